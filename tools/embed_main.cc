#include "tools/default_model.h"
#include "tools/embed.h"

int main(int argc, char** argv) {
  return lanewise::EmbedTexts(
      lanewise::MakeInvocation("embed", argc, argv, lanewise::DefaultModel()));
}
