# `cmake --install`: the program, the plugin library, and what find_package(graft) needs to author operators elsewhere.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/graft")
set(GRAFT_INSTALL_SOURCE_DIR "${CMAKE_INSTALL_DATADIR}/graft/src")

# CMake leaves out of an installed program's search path what lies in the source tree, and .deps does.
if(TARGET graft AND GRAFT_WITH_OPENVINO)
  set_property(TARGET graft PROPERTY INSTALL_RPATH "${GRAFT_SITE_PACKAGES}/openvino/libs")
endif()

foreach(target graft graft_c graft_plugins)
  if(TARGET ${target})
    install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/graft" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh" PATTERN "*.h")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/graft" DESTINATION "${CMAKE_INSTALL_DATADIR}/graft/python"
        FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# An operator outside this repository uses the same building blocks, and its library is made of the same adapter.
foreach(folder ops kernels adapters/tensorrt)
  if(EXISTS "${PROJECT_SOURCE_DIR}/src/${folder}")
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/src/${folder}/" DESTINATION "${GRAFT_INSTALL_SOURCE_DIR}/${folder}"
            FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh" PATTERN "exports.*")
  endif()
endforeach()

get_property(libraries GLOBAL PROPERTY GRAFT_INSTALLED_LIBRARIES)
if(libraries)
  install(TARGETS ${libraries} EXPORT graftTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT graftTargets NAMESPACE graft:: DESTINATION "${package_dir}")
endif()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/graftConfig.cmake.in" "${PROJECT_BINARY_DIR}/graftConfig.cmake"
  INSTALL_DESTINATION "${package_dir}" PATH_VARS GRAFT_INSTALL_SOURCE_DIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/graftConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/graftConfig.cmake" "${PROJECT_BINARY_DIR}/graftConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/GraftOperators.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/FindCudaCompiler.cmake" "${PROJECT_SOURCE_DIR}/cmake/FindTensorRTHeaders.cmake"
        DESTINATION "${package_dir}")
