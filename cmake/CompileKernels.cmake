# Runs nvcc and fails where a kernel spills registers: cmake -DNVCC= -DSOURCE= -DINCLUDE= -DBINARY= -DARCHITECTURES= -P
# -fmad=false: nothing is contracted, as on the CPU (docs/architecture.md, the numerics rule). -compress-all: 2 instead of
# 13 MB of each program; the driver unpacks the one that it loads.
set(codes "")
foreach(architecture IN LISTS ARCHITECTURES)
  list(APPEND codes "-gencode=arch=compute_${architecture},code=sm_${architecture}")
endforeach()
execute_process(
  COMMAND "${NVCC}" -std=c++20 -O3 -fmad=false --expt-relaxed-constexpr --threads 2 -Xptxas -v -Xfatbin -compress-all
          ${codes} "-I${INCLUDE}" -MD -MF "${BINARY}.d" -MT "${BINARY}" -fatbin "${SOURCE}" -o "${BINARY}"
  RESULT_VARIABLE result OUTPUT_VARIABLE report ERROR_VARIABLE report)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${report}")
endif()

# "Compiling entry function 'NAME' for 'sm_90a'", then "... N bytes spill stores, N bytes spill loads".
string(REPLACE ";" "," report "${report}")
string(REPLACE "\n" ";" lines "${report}")
set(spills "")
foreach(line IN LISTS lines)
  if(line MATCHES "Compiling entry function '([^']+)' for '([^']+)'")
    set(kernel "${CMAKE_MATCH_1} for ${CMAKE_MATCH_2}")
  elseif(line MATCHES "[1-9][0-9]* bytes spill (stores|loads)")
    string(STRIP "${line}" line)
    string(APPEND spills "\n  ${kernel}: ${line}")
  elseif(line MATCHES "warning|error")
    message("${line}")
  endif()
endforeach()
file(WRITE "${BINARY}.ptxas" "${report}")
if(spills)
  file(REMOVE "${BINARY}")
  message(FATAL_ERROR "Registers spill to memory in:${spills}")
endif()
