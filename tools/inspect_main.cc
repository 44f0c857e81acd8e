#include "tools/inspect.h"

int main(int argc, char** argv) {
  return lanewise::Inspect(lanewise::MakeInvocation("inspect", argc, argv, ""));
}
