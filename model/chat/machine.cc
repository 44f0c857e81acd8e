#include "model/chat/machine.h"

#include <algorithm>

#include "model/chat/compare.h"
#include "model/chat/unicode.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

absl::Status CheckDepth(int depth) {
  if (depth <= kMaxValueDepth) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("values nested deeper than ", kMaxValueDepth));
}

absl::Status CheckHashable(const Value& key) {
  if (key.is_dict() || key.is(Kind::kList)) {
    return Fail("unhashable type: '", TypeName(key), "'");
  }
  if (!key.is(Kind::kTuple)) return absl::OkStatus();
  for (const Value& item : key.list().items) {
    LANEWISE_RETURN_IF_ERROR(CheckHashable(item));
  }
  return absl::OkStatus();
}

}  // namespace

Machine::~Machine() {
  for (const auto& object : kept_) object->Clear();
}

absl::Status Machine::StepsExhausted() {
  return absl::ResourceExhaustedError("the template took too many steps");
}

absl::Status Machine::Reserve(size_t bytes) {
  if (bytes > limits_.live_bytes - std::min(memory_.live, limits_.live_bytes)) {
    return absl::ResourceExhaustedError("the template needs too much memory");
  }
  return Work(bytes);
}

absl::Status Machine::Charge(Object* object, size_t bytes) {
  LANEWISE_RETURN_IF_ERROR(Reserve(bytes));
  object->memory = &memory_;
  object->charged += bytes;
  memory_.live += bytes;
  return absl::OkStatus();
}

absl::StatusOr<Value> Machine::String(Text text, bool markup) {
  auto object = std::make_shared<StringObject>();
  LANEWISE_RETURN_IF_ERROR(
      Charge(object.get(), sizeof(StringObject) + text.footprint()));
  object->ascii = IsAscii(text.bytes());
  object->text = std::move(text);
  object->markup = markup;
  return Value::Of(Kind::kString, std::move(object));
}

absl::StatusOr<Value> Machine::List(std::vector<Value> items, Kind kind,
                                    absl::string_view tag) {
  auto object = std::make_shared<ListObject>();
  LANEWISE_RETURN_IF_ERROR(
      Charge(object.get(), sizeof(ListObject) + items.size() * sizeof(Value)));
  for (const Value& item : items) {
    object->depth = std::max(object->depth, Depth(item) + 1);
  }
  LANEWISE_RETURN_IF_ERROR(CheckDepth(object->depth));
  object->items = std::move(items);
  object->tag = std::string(tag);
  return Value::Of(kind, std::move(object));
}

absl::StatusOr<Value> Machine::Dict(
    std::vector<std::pair<Value, Value>> items) {
  auto object = std::make_shared<DictObject>();
  size_t bytes = sizeof(DictObject);
  for (auto& [key, value] : items) {
    LANEWISE_RETURN_IF_ERROR(CheckHashable(key));
    object->depth = std::max({object->depth, Depth(key) + 1, Depth(value) + 1});
    bytes += 3 * sizeof(Value);
    if (key.is_string()) {
      bytes += key.bytes().size();
      const auto [it, added] =
          object->index.try_emplace(key.bytes(), object->items.size());
      if (!added) {
        object->items[it->second].second = std::move(value);
        continue;
      }
    } else {
      bool found = false;
      for (auto& entry : object->items) {
        if (entry.first.is_string()) continue;
        LANEWISE_ASSIGN_OR_RETURN(found, Equal(*this, entry.first, key));
        if (!found) continue;
        entry.second = std::move(value);
        break;
      }
      if (found) continue;
    }
    object->items.emplace_back(std::move(key), std::move(value));
  }
  LANEWISE_RETURN_IF_ERROR(CheckDepth(object->depth));
  LANEWISE_RETURN_IF_ERROR(Charge(object.get(), bytes));
  return Value::Of(Kind::kDict, std::move(object));
}

absl::StatusOr<Value> Machine::Namespace() {
  auto object = std::make_shared<NamespaceObject>();
  LANEWISE_RETURN_IF_ERROR(Charge(object.get(), sizeof(NamespaceObject)));
  Keep(object);
  return Value::Of(Kind::kNamespace, std::move(object));
}

absl::StatusOr<Value> Machine::Method(const Value& self,
                                      absl::string_view name) {
  auto object = std::make_shared<MethodObject>();
  LANEWISE_RETURN_IF_ERROR(Charge(object.get(), sizeof(MethodObject)));
  object->self = self;
  object->name = std::string(name);
  return Value::Of(Kind::kMethod, std::move(object));
}

Value Machine::Function(absl::string_view name) {
  auto object = std::make_shared<FunctionObject>();
  object->name = std::string(name);
  return Value::Of(Kind::kFunction, std::move(object));
}

Value Machine::Undefined(absl::string_view message) {
  auto object = std::make_shared<StringObject>();
  object->text = Text::Template(std::string(message));
  return Value::Of(Kind::kUndefined, std::move(object));
}

absl::Status UndefinedError(const Value& v) {
  if (v.object() == nullptr) return Fail("the value is undefined");
  return Fail(v.bytes());
}

bool IsIterable(const Value& v) {
  return v.is_undefined() || v.is_string() || v.is_dict() || v.is_listlike() ||
         v.is(Kind::kLoop) || v.is(Kind::kCycler);
}

absl::StatusOr<std::vector<Value>> Iterate(Machine& machine, const Value& v) {
  std::vector<Value> out;
  if (v.is_undefined()) return out;
  if (v.is_listlike()) {
    ListObject& list = v.list();
    if (v.is(Kind::kGenerator)) {
      if (list.consumed) return out;
      list.consumed = true;
    }
    LANEWISE_RETURN_IF_ERROR(
        machine.Reserve(list.items.size() * sizeof(Value)));
    return list.items;
  }
  if (v.is_dict()) {
    LANEWISE_RETURN_IF_ERROR(
        machine.Reserve(v.dict().items.size() * sizeof(Value)));
    for (const auto& entry : v.dict().items) out.push_back(entry.first);
    return out;
  }
  if (v.is_string()) {
    const std::string& s = v.bytes();
    LANEWISE_RETURN_IF_ERROR(machine.Step(s.size()));
    for (size_t pos = 0; pos < s.size();) {
      const size_t begin = pos;
      DecodeUtf8(s, &pos);
      LANEWISE_ASSIGN_OR_RETURN(
          Value c, machine.String(v.text().Substr(begin, pos - begin)));
      out.push_back(std::move(c));
    }
    return out;
  }
  return Fail("'", TypeName(v), "' object is not iterable");
}

absl::StatusOr<int64_t> Length(const Value& v) {
  switch (v.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return static_cast<int64_t>(
          v.string().ascii ? v.text().size() : CountCodePoints(v.bytes()));
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
    case Kind::kView:
      return static_cast<int64_t>(v.list().items.size());
    case Kind::kDict:
      return static_cast<int64_t>(v.dict().items.size());
    default:
      return Fail("object of type '", TypeName(v), "' has no len()");
  }
}

absl::StatusOr<Value> MakeRange(Machine& machine, std::vector<Value> items,
                                int64_t start, int64_t stop, int64_t step) {
  LANEWISE_ASSIGN_OR_RETURN(
      Value range,
      machine.List(
          std::move(items), Kind::kRange,
          absl::StrCat("range(", start, ", ", stop,
                       step == 1 ? "" : absl::StrCat(", ", step), ")")));
  range.list().range_start = start;
  range.list().range_step = step;
  return range;
}

absl::Status ExpectString(const Value& v, absl::string_view what) {
  if (v.is_undefined()) return UndefinedError(v);
  if (v.is_string()) return absl::OkStatus();
  return Fail(what, ": expected a string, found ", TypeName(v));
}

absl::StatusOr<std::vector<const Value*>> BindArgs(
    absl::string_view what, const CallArgs& args,
    const std::vector<absl::string_view>& names, size_t required) {
  if (args.positional.size() > names.size()) {
    return Fail(what, ": takes at most ", names.size(), " arguments, got ",
                args.positional.size());
  }
  std::vector<const Value*> out(names.size(), nullptr);
  for (size_t i = 0; i < args.positional.size(); ++i) {
    out[i] = &args.positional[i];
  }
  for (const auto& [name, value] : args.keywords) {
    const auto it = std::find(names.begin(), names.end(), name);
    if (it == names.end()) {
      return Fail(what, ": unexpected keyword argument '", name, "'");
    }
    const Value*& slot = out[static_cast<size_t>(it - names.begin())];
    if (slot != nullptr) {
      return Fail(what, ": multiple values for argument '", name, "'");
    }
    slot = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (out[i] == nullptr) {
      return Fail(what, ": missing argument '", names[i], "'");
    }
  }
  return out;
}

absl::StatusOr<int64_t> IntArg(const Value* v, int64_t fallback) {
  if (v == nullptr || v->is_none()) return fallback;
  if (v->is_undefined()) return UndefinedError(*v);
  if (!v->is_integral()) {
    return Fail("expected an integer, found ", TypeName(*v));
  }
  return v->int_value();
}

}  // namespace lanewise::chat
