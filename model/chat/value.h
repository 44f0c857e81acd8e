// The values of the template language: Python's, as far as templates see them.
//
//   Value v = Value::Int(3);
//   LANEWISE_ASSIGN_OR_RETURN(Value s, machine.String(Text::Template("a")));
//
// Values are small and shared; strings, lists, tuples and dicts never change
// once made (the sandbox forbids it). Objects are made by a Machine
// (machine.h), which counts their memory.
#ifndef LANEWISE_MODEL_CHAT_VALUE_H_
#define LANEWISE_MODEL_CHAT_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/chat/text.h"

namespace lanewise::chat {

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kBigInt,  // an unsigned integer of the input above int64: only printed
  kFloat,
  kString,
  kList,
  kTuple,
  kRange,
  kView,       // dict_items, dict_keys, dict_values
  kGenerator,  // what map, select, items … give: can be walked once
  kDict,
  kNamespace,
  kLoop,
  kMacro,
  kFunction,  // a global such as range
  kMethod,    // a method bound to its object
  kCycler,
  kJoiner,
};

// Counts the memory of the live objects of one rendering.
struct MemoryCount {
  size_t live = 0;
};

struct Object {
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() {
    if (memory != nullptr) memory->live -= charged;
  }
  // Drops references to other values, to break cycles at the end.
  virtual void Clear() {}

  MemoryCount* memory = nullptr;
  size_t charged = 0;
};

struct StringObject : Object {
  Text text;
  bool markup = false;  // marked safe: `+` escapes the other operand
  bool ascii = true;
};

struct ListObject;
struct DictObject;
struct NamespaceObject;

class Value {
 public:
  Value() = default;  // an undefined without a message
  static Value None() { return Value(Kind::kNone); }
  static Value Bool(bool b) {
    Value v(Kind::kBool);
    v.int_ = b ? 1 : 0;
    return v;
  }
  static Value Int(int64_t i) {
    Value v(Kind::kInt);
    v.int_ = i;
    return v;
  }
  static Value Float(double d) {
    Value v(Kind::kFloat);
    v.float_ = d;
    return v;
  }
  // `object` must be of the type that goes with `kind`.
  static Value Of(Kind kind, std::shared_ptr<Object> object) {
    Value v(kind);
    v.object_ = std::move(object);
    return v;
  }

  Kind kind() const { return kind_; }
  bool is(Kind k) const { return kind_ == k; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  bool is_none() const { return kind_ == Kind::kNone; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_dict() const { return kind_ == Kind::kDict; }
  // bool or int, and those or float: Python's bool is an int.
  bool is_integral() const {
    return kind_ == Kind::kInt || kind_ == Kind::kBool;
  }
  bool is_numeric() const { return is_integral() || kind_ == Kind::kFloat; }
  // Held as a ListObject.
  bool is_listlike() const {
    return kind_ >= Kind::kList && kind_ <= Kind::kGenerator;
  }

  // Each expects the kind that its name says.
  bool bool_value() const { return int_ != 0; }
  int64_t int_value() const { return int_; }
  double float_value() const { return float_; }
  double as_double() const {
    return kind_ == Kind::kFloat ? float_ : static_cast<double>(int_);
  }
  const StringObject& string() const {
    return static_cast<const StringObject&>(*object_);
  }
  const Text& text() const { return string().text; }
  const std::string& bytes() const { return string().text.bytes(); }
  ListObject& list() const;
  const DictObject& dict() const;
  NamespaceObject& ns() const;

  Object* object() const { return object_.get(); }
  const std::shared_ptr<Object>& shared() const { return object_; }

 private:
  explicit Value(Kind kind) : kind_(kind) {}

  Kind kind_ = Kind::kUndefined;
  union {
    int64_t int_ = 0;
    double float_;
  };
  std::shared_ptr<Object> object_;
};

struct ListObject : Object {
  std::vector<Value> items;
  std::string tag;                  // views: "dict_items"; ranges: their repr
  std::vector<std::string> fields;  // named tuple: names of the elements
  bool consumed = false;            // generators
  int64_t range_start = 0;          // ranges
  int64_t range_step = 1;
  int depth = 1;  // levels of containers, this one included
};

struct DictObject : Object {
  std::vector<std::pair<Value, Value>> items;
  absl::flat_hash_map<std::string, size_t> index;  // of keys that are strings
  int depth = 1;

  // nullptr when absent.
  const Value* Find(absl::string_view key) const;
};

struct NamespaceObject : Object {
  std::vector<std::pair<std::string, Value>> attributes;
  void Clear() override { attributes.clear(); }
};

struct MethodObject : Object {
  Value self;
  std::string name;
};

struct FunctionObject : Object {
  std::string name;
};

struct CyclerObject : Object {
  std::vector<Value> items;
  size_t position = 0;
};

struct JoinerObject : Object {
  Value separator;
  bool used = false;
};

// Arguments of a call of a function, filter, test or method.
struct CallArgs {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;
};

// Python's type name: "str", "dict", ….
absl::string_view TypeName(const Value& v);
// bool(v).
bool Truthy(const Value& v);
// Levels of containers in v: 0 for scalars.
int Depth(const Value& v);

}  // namespace lanewise::chat

#endif  // LANEWISE_MODEL_CHAT_VALUE_H_
