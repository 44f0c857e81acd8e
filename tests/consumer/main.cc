#include <iostream>

#include "simd/target.h"

int main() {
  for (const lanewise::Target& target : lanewise::Target::Available()) {
    std::cout << target.name() << "\n";
  }
}
