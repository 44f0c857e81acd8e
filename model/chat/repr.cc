#include "model/chat/repr.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "model/chat/unicode.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

struct Writer {
  Machine& machine;
  std::string out;
  bool from_input = false;
  int level = 0;

  absl::Status Write(const Value& v);
  absl::Status WriteItems(const ListObject& list);
  absl::Status WriteDict(const DictObject& dict);
  absl::Status WriteNamespace(const NamespaceObject& ns);
  absl::Status WriteString(const Value& v);
  absl::Status WriteOpaque(const Value& v);
};

absl::Status Writer::WriteItems(const ListObject& list) {
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out += ", ";
    LANEWISE_RETURN_IF_ERROR(Write(list.items[i]));
  }
  return absl::OkStatus();
}

absl::Status Writer::WriteDict(const DictObject& dict) {
  out += '{';
  for (size_t i = 0; i < dict.items.size(); ++i) {
    if (i > 0) out += ", ";
    LANEWISE_RETURN_IF_ERROR(Write(dict.items[i].first));
    out += ": ";
    LANEWISE_RETURN_IF_ERROR(Write(dict.items[i].second));
  }
  out += '}';
  return absl::OkStatus();
}

absl::Status Writer::WriteNamespace(const NamespaceObject& ns) {
  out += "<Namespace {";
  for (size_t i = 0; i < ns.attributes.size(); ++i) {
    if (i > 0) out += ", ";
    absl::StrAppend(&out, StringRepr(ns.attributes[i].first), ": ");
    LANEWISE_RETURN_IF_ERROR(Write(ns.attributes[i].second));
  }
  out += "}>";
  return absl::OkStatus();
}

absl::Status Writer::WriteString(const Value& v) {
  LANEWISE_RETURN_IF_ERROR(machine.Reserve(out.size() + v.text().size()));
  from_input = from_input || v.text().has_input();
  if (v.string().markup) {
    absl::StrAppend(&out, "Markup(", StringRepr(v.bytes()), ")");
  } else {
    out += StringRepr(v.bytes());
  }
  return absl::OkStatus();
}

absl::Status Writer::WriteOpaque(const Value& v) {
  // The reference prints addresses here; no template can mean that.
  return absl::UnimplementedError(
      absl::StrCat("printing a ", TypeName(v), " object"));
}

absl::Status Writer::Write(const Value& v) {
  LANEWISE_RETURN_IF_ERROR(machine.Step());
  LANEWISE_RETURN_IF_ERROR(machine.Reserve(out.size() / 64));
  if (++level > 2 * kMaxValueDepth) {
    return absl::ResourceExhaustedError("printing nests too deeply");
  }
  switch (v.kind()) {
    case Kind::kUndefined:
      out += "Undefined";
      break;
    case Kind::kNone:
      out += "None";
      break;
    case Kind::kBool:
      out += v.bool_value() ? "True" : "False";
      break;
    case Kind::kInt:
      absl::StrAppend(&out, v.int_value());
      break;
    case Kind::kBigInt:
      out += v.bytes();
      break;
    case Kind::kFloat:
      out += FloatRepr(v.float_value());
      break;
    case Kind::kString:
      LANEWISE_RETURN_IF_ERROR(WriteString(v));
      break;
    case Kind::kList:
      out += '[';
      LANEWISE_RETURN_IF_ERROR(WriteItems(v.list()));
      out += ']';
      break;
    case Kind::kTuple:
      out += '(';
      LANEWISE_RETURN_IF_ERROR(WriteItems(v.list()));
      out += v.list().items.size() == 1 ? ",)" : ")";
      break;
    case Kind::kRange:
      out += v.list().tag;
      break;
    case Kind::kView:
      absl::StrAppend(&out, v.list().tag, "([");
      LANEWISE_RETURN_IF_ERROR(WriteItems(v.list()));
      out += "])";
      break;
    case Kind::kDict:
      LANEWISE_RETURN_IF_ERROR(WriteDict(v.dict()));
      break;
    case Kind::kNamespace:
      LANEWISE_RETURN_IF_ERROR(WriteNamespace(v.ns()));
      break;
    default:
      return WriteOpaque(v);
  }
  --level;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Text> Str(Machine& machine, const Value& v) {
  if (v.is_string()) {
    LANEWISE_RETURN_IF_ERROR(machine.Reserve(v.text().footprint()));
    return v.text();
  }
  if (v.is_undefined()) return Text();
  return Repr(machine, v);
}

absl::StatusOr<Value> StrValue(Machine& machine, const Value& v) {
  if (v.is_string()) return v;
  LANEWISE_ASSIGN_OR_RETURN(Text text, Str(machine, v));
  return machine.String(std::move(text));
}

absl::StatusOr<Text> Repr(Machine& machine, const Value& v) {
  Writer writer{machine, {}, false, 0};
  LANEWISE_RETURN_IF_ERROR(writer.Write(v));
  return Text::Derived(std::move(writer.out), writer.from_input);
}

std::string FloatRepr(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d > 0 ? "inf" : "-inf";
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), d,
                                    std::chars_format::scientific);
  absl::string_view s(buffer, static_cast<size_t>(result.ptr - buffer));
  std::string out;
  if (s.front() == '-') {
    out += '-';
    s.remove_prefix(1);
  }
  const size_t e = s.find('e');
  std::string digits;
  for (const char c : s.substr(0, e)) {
    if (c != '.') digits += c;
  }
  int exponent = 0;
  for (const char c : s.substr(e + 2)) exponent = exponent * 10 + (c - '0');
  if (s[e + 1] == '-') exponent = -exponent;
  const int n = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    absl::StrAppend(&out, digits.substr(0, 1), n > 1 ? "." : "",
                    digits.substr(1), "e", exponent < 0 ? "-" : "+",
                    absl::StrFormat("%02d", std::abs(exponent)));
  } else if (exponent < 0) {
    absl::StrAppend(&out, "0.", std::string(-exponent - 1, '0'), digits);
  } else if (n <= exponent + 1) {
    absl::StrAppend(&out, digits, std::string(exponent + 1 - n, '0'), ".0");
  } else {
    absl::StrAppend(&out, digits.substr(0, exponent + 1), ".",
                    digits.substr(exponent + 1));
  }
  return out;
}

std::string StringRepr(absl::string_view s) {
  const bool has_single = s.find('\'') != absl::string_view::npos;
  const bool has_double = s.find('"') != absl::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string out(1, quote);
  for (size_t pos = 0; pos < s.size();) {
    const size_t begin = pos;
    const char32_t c = DecodeUtf8(s, &pos);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\\' || c == static_cast<char32_t>(quote)) {
      out += '\\';
      out += static_cast<char>(c);
    } else if (IsPrintable(c)) {
      out.append(s.substr(begin, pos - begin));
    } else if (c < 0x100) {
      absl::StrAppendFormat(&out, "\\x%02x", static_cast<uint32_t>(c));
    } else if (c < 0x10000) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<uint32_t>(c));
    } else {
      absl::StrAppendFormat(&out, "\\U%08x", static_cast<uint32_t>(c));
    }
  }
  out += quote;
  return out;
}

}  // namespace lanewise::chat
