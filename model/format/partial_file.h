// A file that takes its name only once it is whole.
//
//   PartialFile file;
//   int error = file.Create("out.bin");
//   if (error == 0) error = file.Write(bytes, size);
//   if (error == 0) error = file.Close();   // all of it is on the disk
//   if (error == 0) error = file.Rename();  // and now called out.bin
//
// The bytes go to a file of another name in the same folder. Without Rename,
// so after any error, the destructor removes it: a file of the wanted name is
// whole or not there, or still the one that was there before. Errors are errno
// values, for the caller to say what could not be done; 0: none.
#ifndef LANEWISE_MODEL_FORMAT_PARTIAL_FILE_H_
#define LANEWISE_MODEL_FORMAT_PARTIAL_FILE_H_

#include <cstddef>
#include <string>

namespace lanewise {

class PartialFile {
 public:
  PartialFile() = default;
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  [[nodiscard]] int Create(const std::string& path);
  [[nodiscard]] int Write(const void* bytes, size_t size);
  [[nodiscard]] int Close();
  [[nodiscard]] int Rename();

  int fd() const { return fd_; }  // until Close

 private:
  std::string path_;
  std::string temporary_;  // "" when there is none (any more)
  int fd_ = -1;
};

// Writes all of it. 0, or an errno value.
[[nodiscard]] int WriteAll(int fd, const void* bytes, size_t size);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FORMAT_PARTIAL_FILE_H_
