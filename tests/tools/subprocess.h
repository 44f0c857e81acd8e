// Runs a program with pipes or a terminal at its ends.
//
//   RunResult result = RunProgram("tools/inspect", {"model.gguf"});
//
//   Child child("tools/generate_no_model", arguments, {});
//   child.WaitForErr("> ");
//   child.Signal(SIGINT);
//   RunResult result = child.Finish();
#ifndef LANEWISE_TESTS_TOOLS_SUBPROCESS_H_
#define LANEWISE_TESTS_TOOLS_SUBPROCESS_H_

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace lanewise {

struct RunResult {
  int exit_code = -1;  // -1: ended by `signal`
  int signal = 0;
  std::string out;
  std::string err;
};

struct RunOptions {
  std::string in;             // for standard input, which then ends
  bool terminal = false;      // standard input and error are a terminal
  bool keep_in_open = false;  // more may be sent with Send()
  std::string out_file;       // standard output goes there, e.g. /dev/full
  // The pipe of standard output takes 8 bytes and then makes writers wait until
  // it is read; what was in it before comes first.
  bool block_out = false;
  std::vector<std::pair<std::string, std::string>> environment;  // added
};

class Child {
 public:
  Child(const std::string& program, const std::vector<std::string>& arguments,
        const RunOptions& options);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void Send(const std::string& text);  // to standard input
  void CloseIn();
  void Signal(int signal);
  void CloseOut();  // the reader of standard output goes

  // Until out (or err) holds `text`; false when the program ends before, or
  // within a minute it has not come.
  bool WaitForOut(const std::string& text) { return Wait(text, &out_); }
  bool WaitForErr(const std::string& text) { return Wait(text, &err_); }

  // With block_out: until the program has written something, without reading.
  bool WaitForText() const;

  // Until its main thread waits, which a program with one thread does for input
  // and output only; false after a minute.
  bool WaitUntilAsleep() const;

  // Until SIGINT would end the program; false after a minute.
  bool WaitForDefaultInterrupt() const;

  // Reads all, waits for the end (kills after a minute: signal 9).
  RunResult Finish();

 private:
  bool Wait(const std::string& text, std::string* stream);
  // Reads what is there. False when all asked for have ended.
  bool Pump(int timeout_ms, bool out);
  void MakePipes(const RunOptions& options);

  pid_t pid_ = -1;
  int theirs_[3] = {-1, -1, -1};  // the program's ends
  int in_ = -1, out_fd_ = -1, err_fd_ = -1;
  size_t filled_ = 0;
  std::string out_, err_;
};

RunResult RunProgram(const std::string& program,
                     const std::vector<std::string>& arguments,
                     const RunOptions& options = {});

// An error as all programs tell it: this exit code, nothing on standard output,
// and on standard error one line that begins with `program: ` and has the
// words.
void ExpectErrorLine(const RunResult& result, const std::string& program,
                     int exit_code, const std::vector<std::string>& words);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_TOOLS_SUBPROCESS_H_
