# Compiler and linker flags: paceline_flags for every target, paceline_init_flags for all but the kernels,
# paceline_sanitizers for all but tests and kernels that are left plain (PACELINE_SANITIZED_KERNELS), and
# paceline_test_flags for the code of tests.
include(CheckCXXCompilerFlag)

add_library(paceline_flags INTERFACE)
add_library(paceline_init_flags INTERFACE)
add_library(paceline_sanitizers INTERFACE)
# Tests spend their time in the modules that they call: optimising their own code costs more seconds than it saves.
add_library(paceline_test_flags INTERFACE)
target_compile_options(paceline_test_flags INTERFACE -O0 -U_FORTIFY_SOURCE)
target_link_options(paceline_flags INTERFACE -Wl,--as-needed)

# The numerics rule: the compiler contracts and reorders nothing.
# Designated initialisers leave the rest at its default on purpose, so GCC need not point that out.
target_compile_options(paceline_flags INTERFACE -ffp-contract=off -Wall -Wextra -Wno-missing-field-initializers)
if(NOT PACELINE_UNITY)
  target_compile_options(paceline_flags INTERFACE -Wshadow)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # In a united source a local name may equal a file-local one of a neighbour, so only locals are compared.
  target_compile_options(paceline_flags INTERFACE -Wshadow=local)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # By default GCC collects its garbage from 128 MiB on, which takes a tenth of its time. United sources peak at 1.3 GiB.
  target_compile_options(paceline_flags INTERFACE --param=ggc-min-heapsize=1048576)
endif()
if(PACELINE_WERROR)
  target_compile_options(paceline_flags INTERFACE -Werror)
endif()

if(PACELINE_SANITIZE)
  set(sanitize "-fsanitize=${PACELINE_SANITIZE}")
  target_compile_options(paceline_sanitizers INTERFACE ${sanitize} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(PACELINE_SANITIZE_EXCEPT)
    target_compile_options(paceline_sanitizers INTERFACE "-fno-sanitize=${PACELINE_SANITIZE_EXCEPT}")
  endif()
  target_link_options(paceline_sanitizers INTERFACE ${sanitize})
  string(REGEX MATCH "^[a-z]+" memory_sanitizer "${PACELINE_SANITIZE}")
  target_compile_options(paceline_test_flags INTERFACE "-fsanitize=${memory_sanitizer}" -fno-omit-frame-pointer)
  target_link_options(paceline_test_flags INTERFACE ${sanitize})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumented code makes these three warn about what isn't there (GCC manual, -fsanitize=undefined).
    target_compile_options(paceline_flags INTERFACE -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds)
    if(PACELINE_SANITIZE MATCHES "thread")
      # Asio has fences, which ThreadSanitizer can't follow; nothing of ours relies on them.
      target_compile_options(paceline_flags INTERFACE -Wno-tsan)
    endif()
  endif()
  if(PACELINE_FUZZ)
    target_compile_options(paceline_sanitizers INTERFACE -fsanitize=fuzzer-no-link)
  endif()
else()
  target_compile_definitions(paceline_flags INTERFACE _GLIBCXX_ASSERTIONS)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    target_compile_options(paceline_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
  endif()
  foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection)
    string(MAKE_C_IDENTIFIER "PACELINE_HAS${flag}" has)
    check_cxx_compiler_flag(${flag} ${has})
    if(${has})
      target_compile_options(paceline_flags INTERFACE ${flag})
    endif()
  endforeach()
  target_link_options(paceline_flags INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
  check_cxx_compiler_flag(-ftrivial-auto-var-init=zero PACELINE_HAS_INIT_ZERO)
  if(PACELINE_HAS_INIT_ZERO)
    target_compile_options(paceline_init_flags INTERFACE -ftrivial-auto-var-init=zero)
  endif()
endif()
