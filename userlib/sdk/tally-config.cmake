# find_package(tally) defines the target tally::tally. Tally runs static programs.
get_filename_component(_tally "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET tally::tally)
    add_library(tally::tally STATIC IMPORTED)
    set_target_properties(tally::tally PROPERTIES
        IMPORTED_LOCATION "${_tally}/lib/libtally.a"
        INTERFACE_INCLUDE_DIRECTORIES "${_tally}/include"
        INTERFACE_LINK_LIBRARIES "-static")
endif()
unset(_tally)
