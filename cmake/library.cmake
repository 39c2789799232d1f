# libgenerate.so.0 (target generate) and libgenerate.a (target generate_static), from the objects of all rooms.
set(objects)
get_property(rooms GLOBAL PROPERTY GEN_ROOMS)
foreach(room IN LISTS rooms)
  list(APPEND objects $<TARGET_OBJECTS:gen_${room}>)
endforeach()

file(GLOB public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/generate/*.h)
set_source_files_properties(${public_headers} PROPERTIES LANGUAGE C)
file(GLOB cpp_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/generate/*.hpp)
set_source_files_properties(${cpp_headers} PROPERTIES LANGUAGE CXX)
list(APPEND public_headers ${cpp_headers})

set(exports ${PROJECT_SOURCE_DIR}/src/api/exports.map)
add_library(generate SHARED ${objects})
target_link_options(generate PRIVATE LINKER:--version-script=${exports})
if(NOT GEN_SANITIZE)
  # The sanitizers' own symbols come from the program, so only plain builds can promise this.
  target_link_options(generate PRIVATE LINKER:--no-undefined)
endif()
set_target_properties(generate PROPERTIES
  SOVERSION 0 VERSION ${PROJECT_VERSION} LINK_DEPENDS ${exports}
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

add_library(generate_static STATIC ${objects})
set_target_properties(generate_static PROPERTIES
  OUTPUT_NAME generate EXPORT_NAME generate_static
  ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

foreach(target generate generate_static)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${target} PRIVATE Threads::Threads PkgConfig::PCRE2)
  if(GEN_SANITIZE)
    target_link_options(${target} PRIVATE -fsanitize=${GEN_SANITIZE})
  endif()
  add_library(generate::${target} ALIAS ${target})
endforeach()
# One of the two owns the headers, so that they are installed and verified once.
target_sources(generate PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${public_headers})
target_include_directories(generate_static PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
