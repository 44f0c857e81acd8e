// A classification request on its way; for classify*.cc only.
#ifndef LANEWISE_RUNTIME_CLASSIFY_JOB_H_
#define LANEWISE_RUNTIME_CLASSIFY_JOB_H_

#include <cstddef>
#include <vector>

#include "lanewise/classification.h"
#include "runtime/classify.h"

namespace lanewise {

struct Classifier::Job {
  const ClassifyRequest& request;
  ClassifyTask task;
  size_t max_tokens = 0;
  std::vector<Item> items;
  ClassifyResult result;
};

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_CLASSIFY_JOB_H_
