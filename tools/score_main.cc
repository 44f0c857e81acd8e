#include "tools/default_model.h"
#include "tools/score.h"

int main(int argc, char** argv) {
  return lanewise::Score(
      lanewise::MakeInvocation("score", argc, argv, lanewise::DefaultModel()));
}
