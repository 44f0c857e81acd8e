#include "model/chat/subscript.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "model/chat/builtins.h"
#include "model/chat/compare.h"
#include "model/chat/repr.h"
#include "model/chat/unicode.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

// "dict object"; None is itself.
std::string Describe(const Value& v) {
  if (v.is_none()) return "None";
  return absl::StrCat(TypeName(v), " object");
}

Value NoAttribute(Machine& machine, const Value& object,
                  absl::string_view name) {
  return machine.Undefined(absl::StrCat(
      StringRepr(Describe(object)), " has no attribute ", StringRepr(name)));
}

Value Unsafe(Machine& machine, const Value& object, absl::string_view name) {
  return machine.Undefined(
      absl::StrCat("access to attribute ", StringRepr(name), " of '",
                   TypeName(object), "' object is unsafe."));
}

// What Python's getattr finds; *found tells whether.
absl::StatusOr<Value> FindAttribute(Machine& machine, const Value& object,
                                    absl::string_view name, bool* found) {
  *found = true;
  if (FindMethod(object, name) != nullptr) return machine.Method(object, name);
  if (IsMutatingMethod(object, name) ||
      (absl::StartsWith(name, "__") && absl::EndsWith(name, "__"))) {
    return Unsafe(machine, object, name);
  }
  if (object.is(Kind::kNamespace)) {
    for (const auto& [key, value] : object.ns().attributes) {
      if (key == name) return value;
    }
  }
  if (object.is(Kind::kTuple)) {
    const auto& fields = object.list().fields;
    const auto it = std::find(fields.begin(), fields.end(), name);
    if (it != fields.end()) {
      return object.list().items[static_cast<size_t>(it - fields.begin())];
    }
  }
  if (object.is(Kind::kCycler) && name == "current") {
    const auto& cycler = static_cast<const CyclerObject&>(*object.object());
    return cycler.items[cycler.position];
  }
  *found = false;
  return Value();
}

// The index of an element, or -1 when it is out of range.
int64_t Wrap(int64_t index, int64_t length) {
  if (index < 0) index += length;
  return index >= 0 && index < length ? index : -1;
}

absl::StatusOr<Value> CharacterAt(Machine& machine, const Value& s,
                                  int64_t index) {
  size_t begin = static_cast<size_t>(index);
  if (!s.string().ascii) {
    LANEWISE_RETURN_IF_ERROR(machine.Work(s.text().size()));
    begin = ByteOffset(s.bytes(), begin);
  }
  size_t end = begin;
  DecodeUtf8(s.bytes(), &end);
  return machine.String(s.text().Substr(begin, end - begin));
}

// object[key], or an undefined of *found = false.
absl::StatusOr<Value> FindItem(Machine& machine, const Value& object,
                               const Value& key, bool* found) {
  *found = true;
  if (object.is_dict()) {
    if (key.is_string()) {
      const Value* value = object.dict().Find(key.bytes());
      if (value != nullptr) return *value;
    } else {
      for (const auto& entry : object.dict().items) {
        if (entry.first.is_string()) continue;
        LANEWISE_ASSIGN_OR_RETURN(const bool same,
                                  Equal(machine, entry.first, key));
        if (same) return entry.second;
      }
    }
  } else if (key.is_integral()) {
    if (object.is(Kind::kList) || object.is(Kind::kTuple) ||
        object.is(Kind::kRange)) {
      const auto& items = object.list().items;
      const int64_t i =
          Wrap(key.int_value(), static_cast<int64_t>(items.size()));
      if (i >= 0) return items[static_cast<size_t>(i)];
    } else if (object.is_string()) {
      LANEWISE_RETURN_IF_ERROR(
          machine.Work(object.string().ascii ? 0 : object.text().size()));
      LANEWISE_ASSIGN_OR_RETURN(const int64_t length, Length(object));
      const int64_t i = Wrap(key.int_value(), length);
      if (i >= 0) return CharacterAt(machine, object, i);
    }
  }
  *found = false;
  return Value();
}

struct Bounds {
  int64_t start = 0;
  int64_t stop = 0;
  int64_t count = 0;
  int64_t step = 1;
};

// slice.indices of Python.
absl::StatusOr<Bounds> Resolve(int64_t length, const Value& start,
                               const Value& stop, const Value& step) {
  for (const Value* v : {&start, &stop, &step}) {
    if (v->is_undefined()) return UndefinedError(*v);
    if (!v->is_none() && !v->is_integral()) {
      return Fail("slice indices must be integers or None");
    }
  }
  Bounds b;
  b.step = step.is_none() ? 1 : step.int_value();
  if (b.step == 0) return Fail("slice step cannot be zero");
  const bool back = b.step < 0;
  const int64_t low = back ? -1 : 0;
  const int64_t high = back ? length - 1 : length;
  const auto clip = [&](const Value& v, int64_t absent) {
    if (v.is_none()) return absent;
    const int64_t i = v.int_value();
    return std::clamp(i < 0 ? std::max(i, -length - 1) + length : i, low, high);
  };
  b.start = clip(start, back ? high : low);
  const int64_t end = clip(stop, back ? low : high);
  b.stop = end;
  // Steps beyond the length differ in nothing.
  b.step = std::clamp(b.step, -length - 1, length + 1);
  if (back && end < b.start) b.count = (b.start - end - 1) / -b.step + 1;
  if (!back && end > b.start) b.count = (end - b.start - 1) / b.step + 1;
  return b;
}

absl::StatusOr<Value> SliceString(Machine& machine, const Value& s,
                                  const Bounds& b) {
  const Text& text = s.text();
  LANEWISE_RETURN_IF_ERROR(machine.Reserve(text.footprint()));
  if (b.count == 0) return machine.String(Text());
  if (s.string().ascii && b.step == 1) {
    return machine.String(text.Substr(static_cast<size_t>(b.start),
                                      static_cast<size_t>(b.count)));
  }
  if (b.step == 1) {
    const size_t begin = ByteOffset(text.bytes(), static_cast<size_t>(b.start));
    const absl::string_view rest =
        absl::string_view(text.bytes()).substr(begin);
    return machine.String(
        text.Substr(begin, ByteOffset(rest, static_cast<size_t>(b.count))));
  }
  LANEWISE_RETURN_IF_ERROR(machine.Reserve(text.size() * sizeof(size_t)));
  std::vector<size_t> starts;
  for (size_t pos = 0; pos < text.size();) {
    starts.push_back(pos);
    DecodeUtf8(text.bytes(), &pos);
  }
  starts.push_back(text.size());
  Text out;
  for (int64_t i = 0; i < b.count; ++i) {
    const auto at = static_cast<size_t>(b.start + i * b.step);
    out.AppendSlice(text, starts[at], starts[at + 1] - starts[at]);
  }
  return machine.String(std::move(out));
}

}  // namespace

absl::StatusOr<Value> GetAttribute(Machine& machine, const Value& object,
                                   absl::string_view name) {
  if (object.is_undefined()) return UndefinedError(object);
  bool found = false;
  LANEWISE_ASSIGN_OR_RETURN(Value value,
                            FindAttribute(machine, object, name, &found));
  if (found) return value;
  if (object.is_dict()) {
    const Value* item = object.dict().Find(name);
    if (item != nullptr) return *item;
  }
  return NoAttribute(machine, object, name);
}

absl::StatusOr<Value> GetItem(Machine& machine, const Value& object,
                              const Value& key) {
  if (object.is_undefined()) return UndefinedError(object);
  bool found = false;
  LANEWISE_ASSIGN_OR_RETURN(Value value,
                            FindItem(machine, object, key, &found));
  if (found) return value;
  if (key.is_string()) {
    LANEWISE_ASSIGN_OR_RETURN(
        value, FindAttribute(machine, object, key.bytes(), &found));
    if (found) return value;
    return NoAttribute(machine, object, key.bytes());
  }
  LANEWISE_ASSIGN_OR_RETURN(const Text name, Repr(machine, key));
  return machine.Undefined(
      absl::StrCat(Describe(object), " has no element ", name.bytes()));
}

absl::StatusOr<Value> GetSlice(Machine& machine, const Value& object,
                               const Value& start, const Value& stop,
                               const Value& step) {
  if (object.is_undefined()) return UndefinedError(object);
  const bool sliceable = object.is_string() || object.is(Kind::kList) ||
                         object.is(Kind::kTuple) || object.is(Kind::kRange);
  if (!sliceable) {
    return Fail(absl::StrCat(Describe(object), " cannot be sliced"));
  }
  LANEWISE_ASSIGN_OR_RETURN(const int64_t length, Length(object));
  LANEWISE_ASSIGN_OR_RETURN(const Bounds b, Resolve(length, start, stop, step));
  if (object.is_string()) return SliceString(machine, object, b);
  LANEWISE_RETURN_IF_ERROR(
      machine.Reserve(static_cast<size_t>(b.count) * sizeof(Value)));
  std::vector<Value> items;
  for (int64_t i = 0; i < b.count; ++i) {
    items.push_back(
        object.list().items[static_cast<size_t>(b.start + i * b.step)]);
  }
  if (object.is(Kind::kRange)) {
    // A range has at most 100 000 elements: its bounds cannot overflow by
    // more than a step, and then wrap.
    const auto at = [&object](int64_t i) {
      const ListObject& range = object.list();
      return static_cast<int64_t>(static_cast<uint64_t>(range.range_start) +
                                  static_cast<uint64_t>(i) *
                                      static_cast<uint64_t>(range.range_step));
    };
    const int64_t stride =
        static_cast<int64_t>(static_cast<uint64_t>(object.list().range_step) *
                             static_cast<uint64_t>(b.step));
    return MakeRange(machine, std::move(items), at(b.start), at(b.stop),
                     stride);
  }
  return machine.List(std::move(items),
                      object.is(Kind::kTuple) ? Kind::kTuple : Kind::kList);
}

absl::StatusOr<Value> GetPath(Machine& machine, const Value& object,
                              const Value& path, const Value* fallback) {
  Value value = object;
  std::vector<absl::string_view> parts;
  if (path.is_string()) {
    parts = absl::StrSplit(path.bytes(), '.');
  } else if (!path.is_integral()) {
    return Fail("an attribute must be a string or an integer, not ",
                TypeName(path));
  } else {
    parts.push_back("");
  }
  for (const absl::string_view part : parts) {
    int64_t index = 0;
    Value key = path;
    if (path.is_string() && absl::SimpleAtoi(part, &index) &&
        part.find_first_not_of("0123456789") == part.npos) {
      key = Value::Int(index);
    } else if (path.is_string()) {
      LANEWISE_ASSIGN_OR_RETURN(key, machine.TemplateString(part));
    }
    LANEWISE_ASSIGN_OR_RETURN(value, GetItem(machine, value, key));
    if (value.is_undefined() && fallback != nullptr) value = *fallback;
  }
  return value;
}

}  // namespace lanewise::chat
