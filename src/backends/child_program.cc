#include "backends/child_program.h"

#include "base/error.h"

#ifdef PACELINE_PYTHON_CHILD  // its path, which CMake gives
asm(".pushsection .rodata\n"
    ".global paceline_python_child_begin\n.global paceline_python_child_end\n"
    "paceline_python_child_begin:\n.incbin \"" PACELINE_PYTHON_CHILD
    "\"\npaceline_python_child_end:\n"
    ".byte 0\n.popsection\n");
extern "C" const char paceline_python_child_begin[];
extern "C" const char paceline_python_child_end[];

namespace paceline {

std::string child_program() {
  return {paceline_python_child_begin,
          static_cast<size_t>(paceline_python_child_end - paceline_python_child_begin)};
}

bool has_child_program() { return true; }

}  // namespace paceline

#else

namespace paceline {

std::string child_program() {
  throw Error(ErrorCode::unsupported,
              "this build runs no models in Python; configure it with PACELINE_PYTHON_BACKENDS=ON");
}

bool has_child_program() { return false; }

}  // namespace paceline

#endif
