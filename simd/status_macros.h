// LANEWISE_RETURN_IF_ERROR and LANEWISE_ASSIGN_OR_RETURN.
#ifndef LANEWISE_SIMD_STATUS_MACROS_H_
#define LANEWISE_SIMD_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define LANEWISE_RETURN_IF_ERROR(expr)                                \
  do {                                                                \
    if (absl::Status _status = (expr); !_status.ok()) return _status; \
  } while (false)

#define LANEWISE_STATUS_CONCAT_INNER_(a, b) a##b
#define LANEWISE_STATUS_CONCAT_(a, b) LANEWISE_STATUS_CONCAT_INNER_(a, b)

// lhs may declare: LANEWISE_ASSIGN_OR_RETURN(auto model, Model::Load(path));
#define LANEWISE_ASSIGN_OR_RETURN(lhs, expr) \
  LANEWISE_ASSIGN_OR_RETURN_IMPL_(           \
      LANEWISE_STATUS_CONCAT_(_status_or_, __LINE__), lhs, expr)
#define LANEWISE_ASSIGN_OR_RETURN_IMPL_(status_or, lhs, expr) \
  auto status_or = (expr);                                    \
  if (!status_or.ok()) return std::move(status_or).status();  \
  lhs = std::move(status_or).value()

#endif  // LANEWISE_SIMD_STATUS_MACROS_H_
