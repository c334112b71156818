# Compiles neighbouring files of a folder together: most of the time of a small file goes into headers, so a batch takes
# a third of what its files take alone. (Precompiled headers save a quarter of single files. Of batches they save 7 % in
# src/plan and 22 % in cli, half of which making them takes; and ccache serves them worse.)
#
#   add_batches(TARGET COUNT FILES file… [ALONE name…])      batches of COUNT files; those named last are not batched
#
# Names in the anonymous namespaces of a folder must therefore differ; a clash is a compiler's error ("redefinition
# of"). That each file includes what it needs is checked by scripts/check, which looks at files one by one, as
# -DTROUPE_BATCHES=OFF builds.
#
# Why not CMake's UNITY_BUILD: its batches cross folders, so that one more file moves all that follow, and it names
# files by absolute paths, so that ccache (CCACHE_BASEDIR in /CMakeLists.txt) cannot serve one checkout from another.
option(TROUPE_BATCHES "Compile neighbouring files together" ON)

function(add_batches target count)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "FILES;ALONE")
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  set(batches "")
  foreach(file ${arg_FILES})
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE name)
    cmake_path(GET name PARENT_PATH folder)
    string(REPLACE "/" "_" folder ${folder})
    cmake_path(GET name FILENAME short_name)
    if(NOT TROUPE_BATCHES OR short_name IN_LIST arg_ALONE)
      target_sources(${target} PRIVATE ${file})
      continue()
    endif()
    math(EXPR batched_${folder} "${batched_${folder}} + 1") # files of the folder so far
    math(EXPR number "(${batched_${folder}} + ${count} - 1) / ${count}")
    set(batch ${CMAKE_CURRENT_BINARY_DIR}/${folder}_${number}.cpp)
    list(APPEND batches ${batch})
    string(APPEND text_of_${batch} "#include \"${name}\"\n")
  endforeach()
  list(REMOVE_DUPLICATES batches)
  foreach(batch ${batches})
    file(CONFIGURE OUTPUT ${batch} CONTENT "${text_of_${batch}}" @ONLY)
  endforeach()
  target_sources(${target} PRIVATE ${batches})
endfunction()
