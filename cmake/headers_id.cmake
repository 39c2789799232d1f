# cmake -DROOT=<source> -DOUT=<file> -P headers_id.cmake: writes a header with a hash of all headers that the library and a
# backend in a library of its own share. What these say of virtual functions, no size tells.
set(all "")
foreach(room base tensor quant engine engine/backend engine/kv engine/memory engine/rope engine/trace)
  file(GLOB headers LIST_DIRECTORIES FALSE RELATIVE ${ROOT} ${ROOT}/src/${room}/*.h)
  list(SORT headers)
  foreach(header IN LISTS headers)
    file(SHA256 ${ROOT}/${header} hash)
    string(APPEND all "${header} ${hash}\n")
  endforeach()
endforeach()
string(SHA256 id "${all}")
string(SUBSTRING ${id} 0 16 id)
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define GEN_HEADERS_ID \"${id}\"\n")
