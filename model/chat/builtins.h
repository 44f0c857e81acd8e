// The filters, tests, methods and global functions of the language.
//
//   FilterFunction f = FindFilter("trim");
//   LANEWISE_ASSIGN_OR_RETURN(Value v, f(machine, input, args));
#ifndef LANEWISE_MODEL_CHAT_BUILTINS_H_
#define LANEWISE_MODEL_CHAT_BUILTINS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/chat/machine.h"
#include "model/chat/value.h"

namespace lanewise::chat {

using FilterFunction = absl::StatusOr<Value> (*)(Machine&, const Value& input,
                                                 const CallArgs&);
using TestFunction = absl::StatusOr<bool> (*)(Machine&, const Value& input,
                                              const CallArgs&);
using MethodFunction = absl::StatusOr<Value> (*)(Machine&, const Value& self,
                                                 const CallArgs&);
using GlobalFunction = absl::StatusOr<Value> (*)(Machine&, const CallArgs&);

struct NamedFilter {
  absl::string_view name;
  FilterFunction function;
};
struct NamedMethod {
  absl::string_view name;
  MethodFunction function;
};

// nullptr when there is none of that name.
FilterFunction FindFilter(absl::string_view name);
FilterFunction FindTextFilter(absl::string_view name);
FilterFunction FindListFilter(absl::string_view name);
FilterFunction FindSelectFilter(absl::string_view name);
TestFunction FindTest(absl::string_view name);
MethodFunction FindStringMethod(absl::string_view name);
MethodFunction FindSplitMethod(absl::string_view name);
// Of `self`'s type: str, dict, list and tuple, cycler.
MethodFunction FindMethod(const Value& self, absl::string_view name);
// Methods that change a list or dict, which the sandbox forbids.
bool IsMutatingMethod(const Value& self, absl::string_view name);
GlobalFunction FindGlobal(absl::string_view name);
// Raised by raise_exception: carries the template's message alone.
bool IsRaisedByTemplate(const absl::Status& status);

}  // namespace lanewise::chat

#endif  // LANEWISE_MODEL_CHAT_BUILTINS_H_
