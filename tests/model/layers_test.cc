// A model is data: only families know models by their names.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "model/families/family.h"

namespace lanewise {
namespace {

namespace fs = std::filesystem;

TEST(Layers, NothingOutsideFamiliesReadsWhatAModelIsCalled) {
  std::vector<std::string> forbidden = {"model_type", "general.architecture"};
  for (const Family* family : Families()) {
    forbidden.push_back(absl::StrCat("\"", family->name, "\""));
  }
  size_t files = 0;
  for (const char* folder : {"model", "runtime"}) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.is_directory()) continue;
      std::ifstream in(entry.path());
      std::stringstream text;
      text << in.rdbuf();
      for (const std::string& name : forbidden) {
        EXPECT_FALSE(absl::StrContains(text.str(), name))
            << entry.path() << " knows " << name;
      }
      ++files;
    }
  }
  EXPECT_GE(files, 40u);
}

}  // namespace
}  // namespace lanewise
