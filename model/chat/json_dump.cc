#include "model/chat/json_dump.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "model/chat/compare.h"
#include "model/chat/repr.h"
#include "model/chat/unicode.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

class Dumper {
 public:
  Dumper(Machine& machine, const JsonStyle& style)
      : machine_(machine), style_(style) {}

  absl::Status Write(const Value& v);
  Text Take() { return Text::Derived(std::move(out_), from_input_); }

 private:
  absl::Status WriteString(const Value& v);
  absl::Status WriteList(const ListObject& list);
  absl::Status WriteDict(const DictObject& dict);
  absl::StatusOr<Value> Key(const Value& key);
  absl::Status NewLine();
  void WriteFloat(double d);
  void WriteEscaped(char32_t c);

  Machine& machine_;
  const JsonStyle& style_;
  std::string out_;
  bool from_input_ = false;
  size_t level_ = 0;
};

absl::Status Dumper::NewLine() {
  if (!style_.indent.has_value()) return absl::OkStatus();
  LANEWISE_RETURN_IF_ERROR(
      machine_.Reserve(out_.size() / 64 + level_ * style_.indent->size()));
  out_ += '\n';
  for (size_t i = 0; i < level_; ++i) out_ += *style_.indent;
  return absl::OkStatus();
}

void Dumper::WriteFloat(double d) {
  if (std::isnan(d)) {
    out_ += "NaN";
  } else if (std::isinf(d)) {
    out_ += d > 0 ? "Infinity" : "-Infinity";
  } else {
    out_ += FloatRepr(d);
  }
}

void Dumper::WriteEscaped(char32_t c) {
  if (c >= 0x10000) {
    const uint32_t v = static_cast<uint32_t>(c) - 0x10000;
    absl::StrAppendFormat(&out_, "\\u%04x\\u%04x", 0xD800 + (v >> 10),
                          0xDC00 + (v & 0x3FF));
  } else {
    absl::StrAppendFormat(&out_, "\\u%04x", static_cast<uint32_t>(c));
  }
}

absl::Status Dumper::WriteString(const Value& v) {
  const std::string& s = v.bytes();
  from_input_ = from_input_ || v.text().has_input();
  LANEWISE_RETURN_IF_ERROR(machine_.Reserve(out_.size() / 64 + 2 * s.size()));
  out_ += '"';
  for (size_t pos = 0; pos < s.size();) {
    const size_t begin = pos;
    const char32_t c = DecodeUtf8(s, &pos);
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += static_cast<char>(c);
    } else if (c == '\n') {
      out_ += "\\n";
    } else if (c == '\r') {
      out_ += "\\r";
    } else if (c == '\t') {
      out_ += "\\t";
    } else if (c == '\b') {
      out_ += "\\b";
    } else if (c == '\f') {
      out_ += "\\f";
    } else if (c < 0x20 || (style_.ensure_ascii && c >= 0x7F)) {
      WriteEscaped(c);
    } else {
      out_.append(s, begin, pos - begin);
    }
  }
  out_ += '"';
  return absl::OkStatus();
}

absl::Status Dumper::WriteList(const ListObject& list) {
  if (list.items.empty()) {
    out_ += "[]";
    return absl::OkStatus();
  }
  out_ += '[';
  ++level_;
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out_ += style_.item_separator;
    LANEWISE_RETURN_IF_ERROR(NewLine());
    LANEWISE_RETURN_IF_ERROR(Write(list.items[i]));
  }
  --level_;
  LANEWISE_RETURN_IF_ERROR(NewLine());
  out_ += ']';
  return absl::OkStatus();
}

absl::StatusOr<Value> Dumper::Key(const Value& key) {
  switch (key.kind()) {
    case Kind::kString:
      return key;
    case Kind::kNone:
      return machine_.TemplateString("null");
    case Kind::kBool:
      return machine_.TemplateString(key.bool_value() ? "true" : "false");
    case Kind::kInt:
    case Kind::kBigInt:
    case Kind::kFloat:
      return StrValue(machine_, key);
    default:
      return Fail("keys must be str, int, float, bool or None, not ",
                  TypeName(key));
  }
}

absl::Status Dumper::WriteDict(const DictObject& dict) {
  if (dict.items.empty()) {
    out_ += "{}";
    return absl::OkStatus();
  }
  std::vector<size_t> order;
  if (style_.sort_keys) {
    std::vector<Value> keys;
    for (const auto& entry : dict.items) keys.push_back(entry.first);
    LANEWISE_ASSIGN_OR_RETURN(order, SortedOrder(machine_, keys, false));
  }
  out_ += '{';
  ++level_;
  for (size_t i = 0; i < dict.items.size(); ++i) {
    const auto& entry = dict.items[order.empty() ? i : order[i]];
    if (i > 0) out_ += style_.item_separator;
    LANEWISE_RETURN_IF_ERROR(NewLine());
    LANEWISE_ASSIGN_OR_RETURN(const Value key, Key(entry.first));
    LANEWISE_RETURN_IF_ERROR(WriteString(key));
    out_ += style_.key_separator;
    LANEWISE_RETURN_IF_ERROR(Write(entry.second));
  }
  --level_;
  LANEWISE_RETURN_IF_ERROR(NewLine());
  out_ += '}';
  return absl::OkStatus();
}

absl::Status Dumper::Write(const Value& v) {
  LANEWISE_RETURN_IF_ERROR(machine_.Step());
  switch (v.kind()) {
    case Kind::kNone:
      out_ += "null";
      break;
    case Kind::kBool:
      out_ += v.bool_value() ? "true" : "false";
      break;
    case Kind::kInt:
      absl::StrAppend(&out_, v.int_value());
      break;
    case Kind::kBigInt:
      out_ += v.bytes();
      break;
    case Kind::kFloat:
      WriteFloat(v.float_value());
      break;
    case Kind::kString:
      return WriteString(v);
    case Kind::kList:
    case Kind::kTuple:
      return WriteList(v.list());
    case Kind::kDict:
      return WriteDict(v.dict());
    default:
      return Fail("Object of type ", TypeName(v), " is not JSON serializable");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Text> DumpJson(Machine& machine, const Value& v,
                              const JsonStyle& style) {
  Dumper dumper(machine, style);
  LANEWISE_RETURN_IF_ERROR(dumper.Write(v));
  return dumper.Take();
}

}  // namespace lanewise::chat
