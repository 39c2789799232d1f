# Every header compiles on its own: the public ones as C through CMake's header verification, and the
# internal ones as C++. Target verify_headers does both.
add_custom_target(verify_headers)
set_target_properties(generate PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
# CMake makes that target at the end of generation, so it can only be named here.
add_dependencies(verify_headers generate_verify_interface_header_sets)

file(GLOB_RECURSE internal_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.h)
# A body that is compiled once per target (-inl.h) is not meant to stand alone.
list(FILTER internal_headers EXCLUDE REGEX "-inl\\.h$")
set(sources)
foreach(header IN LISTS internal_headers)
  file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/src ${header})
  # Where a file of the same name includes it first, compiling that file has shown it.
  string(REGEX REPLACE "\\.h$" ".cpp" implementation ${header})
  if(EXISTS ${implementation})
    file(STRINGS ${implementation} first REGEX "^#include" LIMIT_COUNT 1)
    file(STRINGS ${header} once REGEX "^#pragma once")
    if(once AND first STREQUAL "#include \"${name}\"")
      continue()
    endif()
  endif()
  set(source ${PROJECT_BINARY_DIR}/verify_headers/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${name}\"  // once\n#include \"${name}\"  // twice\n")
  list(APPEND sources ${source})
endforeach()
add_library(gen_internal_headers OBJECT EXCLUDE_FROM_ALL ${sources})
target_compile_options(gen_internal_headers PRIVATE -fsyntax-only)
target_link_libraries(gen_internal_headers PRIVATE gen_settings gen_highway Threads::Threads
  PkgConfig::PCRE2)
add_dependencies(verify_headers gen_internal_headers)

# Those of device code, as the emulator sees them.
if(TARGET gen_cuda)
  file(GLOB_RECURSE device_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cuda/*.h ${PROJECT_SOURCE_DIR}/cuda/*.cuh)
  set(sources)
  foreach(header IN LISTS device_headers)
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${header})
    set(source ${PROJECT_BINARY_DIR}/verify_headers/${name}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${name}\"  // once\n#include \"${name}\"  // twice\n")
    list(APPEND sources ${source})
  endforeach()
  add_library(gen_device_headers OBJECT EXCLUDE_FROM_ALL ${sources})
  target_compile_definitions(gen_device_headers PRIVATE GEN_CUDA_EMULATED)
  target_compile_options(gen_device_headers PRIVATE -fsyntax-only "SHELL:-iquote ${PROJECT_SOURCE_DIR}")
  target_link_libraries(gen_device_headers PRIVATE gen_settings Threads::Threads)
  add_dependencies(verify_headers gen_device_headers)
endif()
