# Puts the page of src/trace/page together, D3 in it, as two C++ strings: what comes before a trace's data and what comes after.
#
#   make_trace_page(OUTPUT_FILE)
find_file(TROUPE_D3 d3.min.js PATHS /usr/share/nodejs/d3/dist /usr/share/javascript/d3 DOC "The page of traces is drawn with it")
if(NOT TROUPE_D3)
  message(FATAL_ERROR "d3.min.js is not there: install the Debian package node-d3, or say where it is with -DTROUPE_D3=FILE")
endif()

function(make_trace_page output)
  set(folder ${CMAKE_SOURCE_DIR}/src/trace/page)
  set(files page.html licences.txt style.css data.js chart.js paint.js tables.js main.js)
  foreach(name ${files})
    file(READ ${folder}/${name} text)
    cmake_path(GET name STEM stem)
    set(${stem} "${text}")
    set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/${name})
  endforeach()
  file(READ ${TROUPE_D3} d3)
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${TROUPE_D3})
  foreach(part style licences data chart paint tables main d3) # `page` names them: @style@ and so on
    string(FIND "${page}" "@${part}@" at)
    string(LENGTH "@${part}@" length)
    math(EXPR after "${at} + ${length}")
    string(SUBSTRING "${page}" 0 ${at} head)
    string(SUBSTRING "${page}" ${after} -1 tail)
    set(page "${head}${${part}}${tail}")
  endforeach()
  string(FIND "${page}" "@trace@" at)
  math(EXPR after "${at} + 7")
  string(SUBSTRING "${page}" 0 ${at} before)
  string(SUBSTRING "${page}" ${after} -1 after)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT [[
#include "trace/page_parts.hpp"

namespace troupe {

const std::string_view page_before_data = R"trace_page(@before@)trace_page";
const std::string_view page_after_data = R"trace_page(@after@)trace_page";

} // namespace troupe
]])
endfunction()
