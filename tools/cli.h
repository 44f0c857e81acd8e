// What the programs share: how they are called, where files are, how messages
// look, and the exit codes.
//
//   int main(int argc, char** argv) {
//     return lanewise::Generate(
//         lanewise::MakeInvocation("generate", argc, argv, kDefaultModel));
//   }
//
// Results go to standard output and nothing else does; messages are one line
// on standard error, "PROGRAM: what is wrong and how to mend it".
#ifndef LANEWISE_TOOLS_CLI_H_
#define LANEWISE_TOOLS_CLI_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/flags.h"

namespace lanewise {

inline constexpr int kExitOk = 0;
inline constexpr int kExitError = 1;
inline constexpr int kExitUsage = 2;

// File descriptors, so that tests can hand over pipes.
struct Stdio {
  int in = 0;
  int out = 1;
  int err = 2;
};

struct Invocation {
  std::string program;  // "generate"
  std::string argv0;    // where it was started from, to find runfiles
  std::vector<std::string> arguments;
  std::string default_model;  // path within the runfiles; empty: none
  Stdio io;
};

// Also makes a write to a closed pipe an error instead of a signal.
Invocation MakeInvocation(absl::string_view program, int argc, char** argv,
                          absl::string_view default_model);

// Prints the message of `status` on standard error; returns `exit_code`.
int Fail(const Invocation& call, const absl::Status& status,
         int exit_code = kExitError);

// The same for wrong usage; points to --help.
int FailUsage(const Invocation& call, const absl::Status& status);

// One more line on standard error.
void Note(const Invocation& call, absl::string_view text);

// Prints `introduction` and the flags on standard output.
int PrintHelp(const Invocation& call, absl::string_view introduction,
              const FlagSet& flags);

// `path` as the user means it: `bazel run` starts programs in another folder
// and tells the user's in BUILD_WORKING_DIRECTORY.
std::string ResolvePath(absl::string_view path);

// `model` resolved; when empty, the default model among the program's
// runfiles (of its config.json the folder). NOT_FOUND when there is none.
absl::StatusOr<std::string> ModelPath(const Invocation& call,
                                      absl::string_view model);

// The largest text that the programs read.
inline constexpr size_t kMaxInputBytes = size_t{64} << 20;

// A file ("-": standard input) to read from; the caller closes it, standard
// input too. Errors name the file: missing, a directory, not readable.
absl::StatusOr<int> OpenTextFile(const Invocation& call,
                                 absl::string_view path);

// The bytes of a file ("-": standard input) less one newline at their end.
// Errors name the file: missing, a directory, not readable, too large.
absl::StatusOr<std::string> ReadTextFile(const Invocation& call,
                                         absl::string_view path);
absl::StatusOr<std::string> ReadStandardInput(const Invocation& call);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_CLI_H_
