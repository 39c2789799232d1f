# Libraries the product uses. Highway is header-only here (included as a system header).
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
find_path(HIGHWAY_INCLUDE_DIR hwy/highway.h REQUIRED)
add_library(gen_highway INTERFACE)
target_include_directories(gen_highway SYSTEM INTERFACE ${HIGHWAY_INCLUDE_DIR})
