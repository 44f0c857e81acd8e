// docs/faults.md cannot rot: the tests that it names exist, every row has a
// test or a reason, and every id in a test's name has a row.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace lanewise {
namespace {

namespace fs = std::filesystem;

std::string Read(const fs::path& path) {
  std::ifstream stream(path);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

struct Row {
  std::string id;
  std::string where;  // the last cell
};

std::vector<Row> Rows() {
  std::istringstream lines(Read("docs/faults.md"));
  std::vector<Row> rows;
  const std::regex pattern(R"(\| ([A-Z]\d+) \| [^|]+ \| ([^|]+) \|)");
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("| ", 0) != 0 || line.rfind("| id", 0) == 0 ||
        line.rfind("| ---", 0) == 0) {
      continue;
    }
    if (std::regex_match(line, match, pattern)) {
      rows.push_back({match[1], match[2]});
    } else {
      ADD_FAILURE() << "not a row of three cells: " << line;
    }
  }
  return rows;
}

// "Suite.Name" of every test in a file.
std::set<std::string> TestsIn(const fs::path& path) {
  const std::string text = Read(path);
  static const std::regex& pattern =
      *new std::regex(R"(\nTEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\))");
  std::set<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end;
       it != end; ++it) {
    names.insert((*it)[1].str() + "." + (*it)[2].str());
  }
  return names;
}

TEST(FaultsDocument, NamesTestsThatExist) {
  const std::regex pattern(R"(`([\w/]+):(\w+) (\w+\.\w+)`)");
  size_t named = 0;
  for (const Row& row : Rows()) {
    size_t here = 0;
    for (std::sregex_iterator it(row.where.begin(), row.where.end(), pattern),
         end;
         it != end; ++it) {
      const std::string file =
          "tests/" + (*it)[1].str() + "/" + (*it)[2].str() + ".cc";
      EXPECT_EQ(TestsIn(file).count((*it)[3]), 1u)
          << row.id << ": " << file << " has no test " << (*it)[3];
      ++here;
    }
    named += here;
    if (here > 0) continue;
    EXPECT_TRUE(row.where.rfind("Not yet", 0) == 0 ||
                row.where.rfind("Does not apply: ", 0) == 0)
        << row.id << ": neither a test nor a reason: " << row.where;
  }
  EXPECT_GE(named, 100u);
}

TEST(FaultsDocument, HasEachIdOnce) {
  std::map<std::string, int> count;
  for (const Row& row : Rows()) ++count[row.id];
  for (const auto& [id, rows] : count) EXPECT_EQ(rows, 1) << id;
  EXPECT_GE(count.size(), 100u);
}

// "T16T17LongText" has two ids; "MXFP4Scale" and "M2M100" have none.
TEST(FaultsDocument, HasEveryIdThatATestIsNamedAfter) {
  std::set<std::string> ids;
  for (const Row& row : Rows()) ids.insert(row.id);
  const std::regex name(R"(^\w+\.((?:[TLANSPBM]\d{1,2})+)[A-Z]\w*$)");
  const std::regex id(R"([A-Z]\d+)");
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator("tests")) {
    if (entry.path().extension() != ".cc") continue;
    ++files;
    for (const std::string& test : TestsIn(entry.path())) {
      std::smatch match;
      if (!std::regex_match(test, match, name)) continue;
      const std::string all = match[1];
      for (std::sregex_iterator it(all.begin(), all.end(), id), end; it != end;
           ++it) {
        EXPECT_EQ(ids.count(it->str()), 1u)
            << entry.path() << ": " << test << ": docs/faults.md has no row "
            << it->str();
      }
    }
  }
  EXPECT_GE(files, 60u);
}

}  // namespace
}  // namespace lanewise
