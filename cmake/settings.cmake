# Compiler settings that hold for every target of the project.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Who uses a shared library is not linked again when it changes, unless its interface does.
set(CMAKE_LINK_DEPENDS_NO_SHARED ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

# Programs and tests of the build tree look for the library from where they are themselves.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)

# What makes a mistake harder to use. Sanitizers have checks of their own in these places.
option(GEN_HARDEN "Stack protector, checked copies, read-only relocations, control-flow marks" ON)
if(GEN_HARDEN AND NOT GEN_SANITIZE)
  add_compile_options(-fstack-protector-strong)
  # Distributions set it themselves, to 2 or 3; without optimisation it does nothing but warn.
  add_compile_options($<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
  add_link_options(LINKER:-z,relro LINKER:-z,now)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    add_compile_options(-fcf-protection=full)
  endif()
endif()

add_library(gen_settings INTERFACE)
# clang counts -Wsign-conversion to -Wconversion, gcc does not; both see the same here.
# One row, one result: the compiler must not fuse a multiply and an add that the source keeps apart.
target_compile_options(gen_settings INTERFACE
  -Wall -Wextra -Wshadow "$<$<COMPILE_LANGUAGE:CXX>:-Wconversion;-Wsign-conversion>" -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms on std::string's operator+ (gcc bug 105651, fixed in 13).
  target_compile_options(gen_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(GEN_WARNINGS_AS_ERRORS)
  target_compile_options(gen_settings INTERFACE -Werror)
endif()
# Kernels are compiled once per CPU level. Under a sanitizer those for AVX-512 take the longest to compile.
if(GEN_SANITIZE)
  set(GEN_AVX512_DEFAULT OFF)
else()
  set(GEN_AVX512_DEFAULT ON)
endif()
option(GEN_AVX512 "Compile kernels for AVX-512, too; without them no level above AVX2 is detected" ${GEN_AVX512_DEFAULT})

# gen_depend_on_avx512(<sources…>): what is compiled another way without those. The rest of a tree stays as it is.
function(gen_depend_on_avx512)
  if(NOT GEN_AVX512)
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_DEFINITIONS GEN_WITHOUT_AVX512)
  endif()
endfunction()

# Those of GEN_SANITIZE that a directory's targets do without.
define_property(TARGET PROPERTY GEN_LIBRARY_ONLY_SANITIZERS INITIALIZE_FROM_VARIABLE GEN_LIBRARY_ONLY_SANITIZERS)
if(GEN_SANITIZE)
  set(without $<TARGET_PROPERTY:GEN_LIBRARY_ONLY_SANITIZERS>)
  target_compile_options(gen_settings INTERFACE -fsanitize=${GEN_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all $<$<BOOL:${without}>:-fno-sanitize=${without}>)
  target_link_options(gen_settings INTERFACE -fsanitize=${GEN_SANITIZE})
endif()
if(GEN_BUILD_FUZZERS)
  target_compile_options(gen_settings INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(gen_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()
# "room/file.h" is a room's header, <generate/file.h> a public one; the generate room makes both names exist.
target_compile_options(gen_settings INTERFACE "SHELL:-iquote ${PROJECT_SOURCE_DIR}/src")
target_include_directories(gen_settings INTERFACE ${PROJECT_SOURCE_DIR}/include)
