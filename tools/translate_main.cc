#include "tools/default_model.h"
#include "tools/translate.h"

int main(int argc, char** argv) {
  return lanewise::TranslateTexts(lanewise::MakeInvocation(
      "translate", argc, argv, lanewise::DefaultModel()));
}
