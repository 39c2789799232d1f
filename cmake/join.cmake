# cmake -DSOURCES=<files> -DROOT=<source root> -DOUT=<file> -P join.cmake: writes C++ files into one. The unnamed namespace of each
# gets one with a name in it, so that what two files call the same stays apart.
set(all "")
foreach(path IN LISTS SOURCES)
  file(READ ${path} text)
  cmake_path(GET path FILENAME name)
  string(MAKE_C_IDENTIFIER "of_${name}" name)
  string(REGEX REPLACE "\nnamespace {\n" "\nnamespace { namespace ${name} {\n" text "${text}")
  string(REGEX REPLACE "\n}  // namespace\n" "\n}}  // namespace\n" text "${text}")
  # Names from the root, so that checkouts in other folders can share what is compiled.
  file(RELATIVE_PATH name ${ROOT} ${path})
  string(APPEND all "#line 1 \"${name}\"\n${text}")
endforeach()
file(WRITE ${OUT} "${all}")
