# Packages install libraries where the dynamic linker looks anyway; the paths by which the build and `cmake --install`
# find them go.
file(GLOB_RECURSE files LIST_DIRECTORIES false ${CPACK_TEMPORARY_DIRECTORY}/*)
foreach(file ${files})
  if(NOT IS_SYMLINK ${file})
    file(READ ${file} magic LIMIT 4 HEX)
    if(magic STREQUAL 7f454c46) # an ELF file
      file(RPATH_REMOVE FILE ${file})
    endif()
  endif()
endforeach()
