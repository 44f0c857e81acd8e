#include "model/chat/value.h"

namespace lanewise::chat {

ListObject& Value::list() const { return static_cast<ListObject&>(*object_); }

const DictObject& Value::dict() const {
  return static_cast<const DictObject&>(*object_);
}

NamespaceObject& Value::ns() const {
  return static_cast<NamespaceObject&>(*object_);
}

const Value* DictObject::Find(absl::string_view key) const {
  const auto it = index.find(key);
  return it == index.end() ? nullptr : &items[it->second].second;
}

absl::string_view TypeName(const Value& v) {
  switch (v.kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
    case Kind::kBigInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return v.string().markup ? "Markup" : "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kRange:
      return "range";
    case Kind::kView:
      return v.list().tag;
    case Kind::kGenerator:
      return "generator";
    case Kind::kDict:
      return "dict";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kMacro:
      return "Macro";
    case Kind::kFunction:
      return "function";
    case Kind::kMethod:
      return "builtin_function_or_method";
    case Kind::kCycler:
      return "Cycler";
    case Kind::kJoiner:
      return "Joiner";
  }
  return "object";
}

bool Truthy(const Value& v) {
  switch (v.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return v.int_value() != 0;
    case Kind::kFloat:
      return v.float_value() != 0;
    case Kind::kString:
      return !v.text().empty();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
    case Kind::kView:
      return !v.list().items.empty();
    case Kind::kDict:
      return !v.dict().items.empty();
    default:
      return true;
  }
}

int Depth(const Value& v) {
  if (v.is_listlike()) return v.list().depth;
  return v.is_dict() ? v.dict().depth : 0;
}

}  // namespace lanewise::chat
