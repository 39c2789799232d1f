# cpack -G DEB: Debian packages libgenerate0 (the library), libgenerate-dev (headers, the static library, what compilers and
# CMake look for) and generate (the programs, their pages, the bundled models, documents).
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME libgenerate)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "libgenerate's developers <developers@libgenerate.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/package)  # cpack -B gives another one
# Bindings have packages of their own languages.
set(CPACK_COMPONENTS_ALL runtime dev)
if(TARGET generate_cli)
  list(APPEND CPACK_COMPONENTS_ALL program)
endif()
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};${PROJECT_NAME};ALL;/")

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# What these three were once.
set(CPACK_DEBIAN_PACKAGE_CONFLICTS libgenerate)
set(CPACK_DEBIAN_PACKAGE_REPLACES libgenerate)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libgenerate0)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "text generation library for GGUF models
Loads GGUF models and makes text: tokenizing, decoding on the CPU, caches of
every kind, batches, streams, behind a C API.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libgenerate-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_DESCRIPTION "text generation library for GGUF models, development files
Headers for C and C++, the static library, and what pkg-config and CMake look
for.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME generate)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "program and server for text generation with GGUF models
Continues texts, talks, inspects, measures and quantizes models, and serves
them over HTTP, on the CPU. A small model of its own comes with it.")
set(same "libgenerate0 (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${same}, libpcre2-dev")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "${same}")

# What the binaries need is read from them where the tools for that are there, else named.
find_program(GEN_SHLIBDEPS dpkg-shlibdeps)
find_program(GEN_FILE file)
if(GEN_SHLIBDEPS AND GEN_FILE)
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
  set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
  set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY =)
else()
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "libc6, libstdc++6, libgcc-s1, libpcre2-8-0")
  string(APPEND CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS ", libc6, libstdc++6, libgcc-s1")
endif()
file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/triggers)
# Copyright and changes in Debian's places.
configure_file(${PROJECT_SOURCE_DIR}/cmake/debian_files.cmake.in ${PROJECT_BINARY_DIR}/debian_files.cmake @ONLY)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_BINARY_DIR}/debian_files.cmake)
include(CPack)
