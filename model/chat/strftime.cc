#include "model/chat/strftime.h"

#include <array>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/civil_time.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

constexpr std::array<absl::string_view, 7> kDays = {
    "Monday", "Tuesday",  "Wednesday", "Thursday",
    "Friday", "Saturday", "Sunday"};
constexpr std::array<absl::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};

struct Moment {
  absl::CivilSecond time;
  int64_t unix_seconds;
  int weekday;  // Monday = 0
  int yearday;  // 1 = the first of January
};

// ISO 8601: the week holds the year's first Thursday or follows it.
int64_t IsoYear(const Moment& m, int* week) {
  const absl::CivilDay thursday = absl::CivilDay(m.time) + (3 - m.weekday);
  *week = (absl::GetYearDay(thursday) - 1) / 7 + 1;
  return thursday.year();
}

struct Field {
  std::string text;
  int width = 0;  // of a number; 0 = text
  char pad = '0';
};

Field Number(int64_t value, int width, char pad = '0') {
  return {absl::StrCat(value), width, pad};
}

const char* Composite(char directive) {
  switch (directive) {
    case 'c':
      return "%a %b %e %H:%M:%S %Y";
    case 'D':
    case 'x':
      return "%m/%d/%y";
    case 'F':
      return "%Y-%m-%d";
    case 'r':
      return "%I:%M:%S %p";
    case 'R':
      return "%H:%M";
    case 'T':
    case 'X':
      return "%H:%M:%S";
    default:
      return nullptr;
  }
}

absl::StatusOr<Field> TextField(char directive, const Moment& m) {
  const auto day = kDays[static_cast<size_t>(m.weekday)];
  const auto month = kMonths[static_cast<size_t>(m.time.month() - 1)];
  switch (directive) {
    case 'a':
      return Field{std::string(day.substr(0, 3))};
    case 'A':
      return Field{std::string(day)};
    case 'b':
    case 'h':
      return Field{std::string(month.substr(0, 3))};
    case 'B':
      return Field{std::string(month)};
    case 'p':
      return Field{m.time.hour() < 12 ? "AM" : "PM"};
    case 'P':
      return Field{m.time.hour() < 12 ? "am" : "pm"};
    case 'n':
      return Field{"\n"};
    case 't':
      return Field{"\t"};
    case '%':
      return Field{"%"};
    case 'f':
      return Field{"000000"};
    case 'z':
    case 'Z':
      return Field{""};
    default:
      return absl::UnimplementedError(
          absl::StrCat("strftime directive %", std::string(1, directive)));
  }
}

absl::StatusOr<Field> MakeField(char directive, const Moment& m) {
  const absl::CivilSecond& t = m.time;
  const int hour12 = t.hour() % 12 == 0 ? 12 : t.hour() % 12;
  int week = 0;
  const int64_t iso_year = IsoYear(m, &week);
  const int sunday = (m.weekday + 1) % 7;
  switch (directive) {
    case 'Y':
      return Number(t.year(), 1);
    case 'C':
      return Number(t.year() / 100, 2);
    case 'y':
      return Number(t.year() % 100, 2);
    case 'G':
      return Number(iso_year, 1);
    case 'g':
      return Number(iso_year % 100, 2);
    case 'm':
      return Number(t.month(), 2);
    case 'd':
      return Number(t.day(), 2);
    case 'e':
      return Number(t.day(), 2, ' ');
    case 'H':
      return Number(t.hour(), 2);
    case 'k':
      return Number(t.hour(), 2, ' ');
    case 'I':
      return Number(hour12, 2);
    case 'l':
      return Number(hour12, 2, ' ');
    case 'M':
      return Number(t.minute(), 2);
    case 'S':
      return Number(t.second(), 2);
    case 'j':
      return Number(m.yearday, 3);
    case 's':
      return Number(m.unix_seconds, 1);
    case 'u':
      return Number(m.weekday + 1, 1);
    case 'w':
      return Number(sunday, 1);
    case 'U':
      return Number((m.yearday + 6 - sunday) / 7, 2);
    case 'V':
      return Number(week, 2);
    case 'W':
      return Number((m.yearday + 6 - m.weekday) / 7, 2);
    default:
      return TextField(directive, m);
  }
}

absl::Status Format(absl::string_view format, const Moment& m,
                    std::string* out) {
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out->push_back(format[i]);
      continue;
    }
    char flag = 0;
    ++i;
    if (absl::StrContains("-_0^", format.substr(i, 1)) &&
        i + 1 < format.size()) {
      flag = format[i++];
    }
    if (const char* parts = Composite(format[i]); parts != nullptr) {
      LANEWISE_RETURN_IF_ERROR(Format(parts, m, out));
      continue;
    }
    LANEWISE_ASSIGN_OR_RETURN(Field field, MakeField(format[i], m));
    const char pad = flag == '_' ? ' ' : flag == '0' ? '0' : field.pad;
    if (flag == '^') absl::AsciiStrToUpper(&field.text);
    const int missing = field.width - static_cast<int>(field.text.size());
    if (flag != '-' && missing > 0) {
      out->append(static_cast<size_t>(missing), pad);
    }
    out->append(field.text);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> StrfTime(absl::string_view format,
                                     int64_t unix_seconds) {
  constexpr int64_t kYear9999 = 253402300799;
  if (unix_seconds < 0 || unix_seconds > kYear9999) {
    return absl::InvalidArgumentError(absl::StrCat(
        "strftime_now: the clock is out of range: ", unix_seconds));
  }
  Moment m;
  m.time = absl::CivilSecond(1970, 1, 1) + unix_seconds;
  m.unix_seconds = unix_seconds;
  m.weekday = static_cast<int>(absl::GetWeekday(m.time));
  m.yearday = absl::GetYearDay(absl::CivilDay(m.time));
  std::string out;
  LANEWISE_RETURN_IF_ERROR(Format(format, m, &out));
  return out;
}

}  // namespace lanewise::chat
