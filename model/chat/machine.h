// Makes values and keeps the budgets of one rendering.
//
//   Machine machine(options);
//   LANEWISE_RETURN_IF_ERROR(machine.Step());
//   LANEWISE_ASSIGN_OR_RETURN(Value v, machine.List({Value::Int(1)}));
//
// Steps count evaluated nodes and, by size, the work of operations on strings
// and containers; memory counts what is alive. Beyond either:
// RESOURCE_EXHAUSTED. The machine must outlive every value it made.
#ifndef LANEWISE_MODEL_CHAT_MACHINE_H_
#define LANEWISE_MODEL_CHAT_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/chat/value.h"

namespace lanewise::chat {

constexpr int kMaxValueDepth = 200;  // lists in lists in …

// An error of the template or its data.
template <typename... Args>
absl::Status Fail(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat(args...));
}

class Machine {
 public:
  struct Limits {
    size_t steps;
    size_t live_bytes;
  };

  Machine(const Limits& limits, int64_t now_unix_seconds)
      : limits_(limits), now_(now_unix_seconds) {}
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  int64_t now_unix_seconds() const { return now_; }

  absl::Status Step(size_t n = 1) {
    if (n > limits_.steps - steps_) return StepsExhausted();
    steps_ += n;
    return absl::OkStatus();
  }
  // Work over `bytes` bytes or characters.
  absl::Status Work(size_t bytes) { return Step(bytes / 128); }
  // Whether `bytes` more fit, asked before they are allocated, and the work of
  // writing them.
  absl::Status Reserve(size_t bytes);

  absl::StatusOr<Value> String(Text text, bool markup = false);
  absl::StatusOr<Value> TemplateString(absl::string_view s) {
    return String(Text::Template(std::string(s)));
  }
  absl::StatusOr<Value> List(std::vector<Value> items, Kind kind = Kind::kList,
                             absl::string_view tag = "");
  // Later entries replace earlier ones of an equal key, in their place.
  // Keys must be hashable.
  absl::StatusOr<Value> Dict(std::vector<std::pair<Value, Value>> items);
  absl::StatusOr<Value> Namespace();
  absl::StatusOr<Value> Method(const Value& self, absl::string_view name);
  Value Function(absl::string_view name);
  // Using the value gives `message`.
  Value Undefined(absl::string_view message);

  // For objects that can be part of a cycle: kept until the end, then cleared.
  void Keep(std::shared_ptr<Object> object) {
    kept_.push_back(std::move(object));
  }

  // Counts `bytes` for `object` until it dies.
  absl::Status Charge(Object* object, size_t bytes);

 private:
  static absl::Status StepsExhausted();

  Limits limits_;
  int64_t now_;
  size_t steps_ = 0;
  MemoryCount memory_;
  std::vector<std::shared_ptr<Object>> kept_;
};

// The message of an undefined: what using it reports.
absl::Status UndefinedError(const Value& v);

// The elements as Python's iter() gives them: characters of strings, keys of
// dicts, nothing for an undefined. A generator is consumed.
absl::StatusOr<std::vector<Value>> Iterate(Machine& machine, const Value& v);
bool IsIterable(const Value& v);
// len(v).
absl::StatusOr<int64_t> Length(const Value& v);

// range(start, stop, step), whose elements are `items`.
absl::StatusOr<Value> MakeRange(Machine& machine, std::vector<Value> items,
                                int64_t start, int64_t stop, int64_t step);

// A string for an operation on text: `what` names the operation.
absl::Status ExpectString(const Value& v, absl::string_view what);

// Arguments by position or keyword, in the order of `names`; an absent one is
// nullptr. The first `required` must be there.
absl::StatusOr<std::vector<const Value*>> BindArgs(
    absl::string_view what, const CallArgs& args,
    const std::vector<absl::string_view>& names, size_t required);

// An optional argument as int64 or bool.
absl::StatusOr<int64_t> IntArg(const Value* v, int64_t fallback);
inline bool BoolArg(const Value* v, bool fallback) {
  return v == nullptr ? fallback : Truthy(*v);
}

}  // namespace lanewise::chat

#endif  // LANEWISE_MODEL_CHAT_MACHINE_H_
