#include "tools/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "simd/status_macros.h"
#include "tools/escaped.h"
#include "tools/output.h"

// The header's place depends on the version of rules_cc.
#if __has_include("rules_cc/cc/runfiles/runfiles.h")
#include "rules_cc/cc/runfiles/runfiles.h"
using ::rules_cc::cc::runfiles::Runfiles;
#else
#include "tools/cpp/runfiles/runfiles.h"
using ::bazel::tools::cpp::runfiles::Runfiles;
#endif

namespace lanewise {
namespace {

absl::Status FileError(absl::string_view name, int error) {
  return absl::ErrnoToStatus(error, Escaped(name, PATH_MAX));
}

// All bytes of a descriptor, at most kMaxInputBytes.
absl::StatusOr<std::string> ReadAll(int fd, absl::string_view name) {
  std::string text;
  std::string block(size_t{64} << 10, '\0');
  while (true) {
    const ssize_t count = read(fd, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError(name, errno);
    if (count == 0) break;
    if (text.size() + static_cast<size_t>(count) > kMaxInputBytes) {
      return absl::OutOfRangeError(
          absl::StrCat(Escaped(name, PATH_MAX), ": expected at most ",
                       kMaxInputBytes >> 20, " MiB of text, found more"));
    }
    text.append(block.data(), static_cast<size_t>(count));
  }
  if (absl::EndsWith(text, "\n")) {
    text.pop_back();
    if (absl::EndsWith(text, "\r")) text.pop_back();
  }
  return text;
}

// The file of a runfiles path as seen from a program at `program`; empty when
// there is none.
std::string FindRunfile(const std::string& program,
                        const std::string& runfile) {
  std::string error;
  const std::unique_ptr<Runfiles> runfiles(Runfiles::Create(program, &error));
  if (runfiles == nullptr) return "";
  std::string path = runfiles->Rlocation(runfile);
  return path.empty() || access(path.c_str(), R_OK) != 0 ? "" : path;
}

std::string ProgramFile() {
  std::string path(PATH_MAX, '\0');
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  path.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return path;
}

}  // namespace

Invocation MakeInvocation(absl::string_view program, int argc, char** argv,
                          absl::string_view default_model) {
  signal(SIGPIPE, SIG_IGN);
  Invocation call;
  call.program = std::string(program);
  if (argc > 0) call.argv0 = argv[0];
  for (int i = 1; i < argc; ++i) call.arguments.emplace_back(argv[i]);
  call.default_model = std::string(default_model);
  return call;
}

int Fail(const Invocation& call, const absl::Status& status, int exit_code) {
  Note(call, status.message());
  return exit_code;
}

int FailUsage(const Invocation& call, const absl::Status& status) {
  Note(call, absl::StrCat(status.message(), " (see --help)"));
  return kExitUsage;
}

void Note(const Invocation& call, absl::string_view text) {
  Output(call.io.err)
      .Write(absl::StrCat(call.program, ": ", OneLine(text), "\n"));
}

int PrintHelp(const Invocation& call, absl::string_view introduction,
              const FlagSet& flags) {
  Output out(call.io.out);
  out.Write(absl::StrCat(introduction, flags.Help()));
  return out.status().ok() ? kExitOk : Fail(call, out.status());
}

std::string ResolvePath(absl::string_view path) {
  const char* folder = getenv("BUILD_WORKING_DIRECTORY");
  if (absl::StartsWith(path, "/") || folder == nullptr || *folder == '\0') {
    return std::string(path);
  }
  return absl::StrCat(folder, "/", path);
}

absl::StatusOr<std::string> ModelPath(const Invocation& call,
                                      absl::string_view model) {
  if (!model.empty()) return ResolvePath(model);
  if (!call.default_model.empty()) {
    // argv[0] is a link in a runfiles tree, or a name found by PATH; the link
    // of the process leads to the file that was built.
    for (const std::string& program : {call.argv0, ProgramFile()}) {
      std::string path = FindRunfile(program, call.default_model);
      if (path.empty()) continue;
      return std::string(absl::StripSuffix(path, "/config.json"));
    }
    return absl::NotFoundError(absl::StrCat(
        "the default model is not beside this program: build it with "
        "./bazelw build //tools:",
        call.program, ", or name a model: --model FILE_OR_FOLDER"));
  }
  return absl::NotFoundError(
      "this program comes without a default model: name one with --model "
      "FILE_OR_FOLDER");
}

absl::StatusOr<int> OpenTextFile(const Invocation& call,
                                 absl::string_view path) {
  if (path == "-") {
    const int copy = fcntl(call.io.in, F_DUPFD_CLOEXEC, 0);
    return copy >= 0 ? absl::StatusOr<int>(copy)
                     : FileError("standard input", errno);
  }
  const std::string resolved = ResolvePath(path);
  // Embedded NULs would open another file.
  if (resolved.find('\0') != std::string::npos) return FileError(path, ENOENT);
  const int fd = open(resolved.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError(resolved, errno);
  struct stat info;
  if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    close(fd);
    return absl::InvalidArgumentError(absl::StrCat(
        Escaped(resolved), ": expected a text file, found a directory"));
  }
  return fd;
}

absl::StatusOr<std::string> ReadTextFile(const Invocation& call,
                                         absl::string_view path) {
  if (path == "-") return ReadStandardInput(call);
  LANEWISE_ASSIGN_OR_RETURN(const int fd, OpenTextFile(call, path));
  absl::StatusOr<std::string> text = ReadAll(fd, ResolvePath(path));
  close(fd);
  return text;
}

absl::StatusOr<std::string> ReadStandardInput(const Invocation& call) {
  return ReadAll(call.io.in, "standard input");
}

}  // namespace lanewise
