#include "backends/child_program.h"

#include "base/error.h"

#ifdef PACELINE_PYTHON_CHILD  // its path, which CMake gives
asm(".pushsection .rodata\n"
    ".global python_child_program_begin\n.global python_child_program_end\n"
    "python_child_program_begin:\n.incbin \"" PACELINE_PYTHON_CHILD
    "\"\npython_child_program_end:\n"
    ".byte 0\n.popsection\n");
extern "C" const char python_child_program_begin[];
extern "C" const char python_child_program_end[];

namespace paceline {

std::string child_program() {
  return {python_child_program_begin,
          static_cast<size_t>(python_child_program_end - python_child_program_begin)};
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
