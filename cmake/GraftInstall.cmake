# `cmake --install`: the program, the plugin library, and what find_package(graft) needs to author operators elsewhere.
#
# An installation has all components. A wheel, which cmake/wheel packs, has two of them: `package`, the files that have the
# same place in both, and `wheel`, the files that have another place in a wheel.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/graft")
set(GRAFT_INSTALL_SOURCE_DIR "${CMAKE_INSTALL_DATADIR}/graft/src")

# The worker program runs models in OpenVINO, whose libraries are installed into a separate folder, because OpenVINO loads
# its CPU plugin and its ONNX reader from its own folder. Its plugins for GPUs and NPUs and its readers for other formats are
# not used.
if(GRAFT_WITH_OPENVINO)
  install(DIRECTORY "${GRAFT_SITE_PACKAGES}/openvino/libs/" DESTINATION "${CMAKE_INSTALL_LIBDIR}/graft"
          FILES_MATCHING PATTERN "libopenvino.so*" PATTERN "libopenvino_*_cpu_plugin.so*" PATTERN "libopenvino_onnx_frontend.so*"
                         PATTERN "libtbb*.so*" PATTERN "libhwloc.so*")
  file(GLOB licenses "${GRAFT_SITE_PACKAGES}/openvino-*.dist-info/licenses")
  install(DIRECTORY "${licenses}/" DESTINATION "${CMAKE_INSTALL_DOCDIR}/openvino")
  file(RELATIVE_PATH up "/libexec" "/${CMAKE_INSTALL_LIBDIR}/graft")
  # The worker is built with the RPATH of the installation, and a link replaces the installed folder: if CMake has to change
  # an RPATH during the installation, it ends it with an empty entry, which the loader interprets as the working directory.
  set_target_properties(graft_engine_worker PROPERTIES INSTALL_RPATH "$ORIGIN/${up}" BUILD_WITH_INSTALL_RPATH ON)
  get_filename_component(libraries_link "${GRAFT_OUTPUT_DIR}/libexec/${up}" ABSOLUTE)
  get_filename_component(libraries_folder "${libraries_link}" DIRECTORY)
  file(MAKE_DIRECTORY "${libraries_folder}")
  file(CREATE_LINK "${GRAFT_SITE_PACKAGES}/openvino/libs" "${libraries_link}" SYMBOLIC)
  # Programs search for the worker in ../libexec, so it is installed there even if the system has another libexec folder.
  install(TARGETS graft_engine_worker RUNTIME DESTINATION libexec)
endif()
install(TARGETS graft_toolkit EXPORT graftToolkitTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT graftToolkitTargets NAMESPACE graft:: DESTINATION "${package_dir}" COMPONENT package)

# The program finds libgraft.so from its own folder: in an installation, and in the build and a wheel, where both are in bin
# and lib.
file(RELATIVE_PATH up "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
if(TARGET graft)
  set_target_properties(graft PROPERTIES INSTALL_RPATH "$ORIGIN/${up};$ORIGIN/../lib" BUILD_WITH_INSTALL_RPATH ON)
endif()
foreach(target graft graft_c graft_plugins graft_stand_ins graft_onnx_names)
  if(TARGET ${target})
    install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()

# The program writes its man page and the completions for shells. Each file is installed where man and the shells search
# under /usr and /usr/local.
if(TARGET graft)
  set(man_page "${PROJECT_BINARY_DIR}/man/graft.1")
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/man")
  # After cross-compilation the program runs in the emulator of the toolchain.
  set(run_graft ${CMAKE_CROSSCOMPILING_EMULATOR} "$<TARGET_FILE:graft>")
  list(TRANSFORM run_graft REPLACE "(.+)" "\"\\1\"")
  list(JOIN run_graft " " run_graft)
  install(CODE "execute_process(COMMAND ${run_graft} help --man OUTPUT_FILE \"${man_page}\" COMMAND_ERROR_IS_FATAL ANY)"
          COMPONENT package)
  install(FILES "${man_page}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT package)
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/completions")
  foreach(shell_and_file "bash bash-completion/completions graft" "zsh zsh/site-functions _graft"
                         "fish fish/vendor_completions.d graft.fish")
    separate_arguments(shell_and_file)
    list(GET shell_and_file 0 shell)
    list(GET shell_and_file 1 folder)
    list(GET shell_and_file 2 file)
    install(CODE "execute_process(COMMAND ${run_graft} completions ${shell}
                                  OUTPUT_FILE \"${PROJECT_BINARY_DIR}/completions/${file}\" COMMAND_ERROR_IS_FATAL ANY)"
            COMPONENT package)
    install(FILES "${PROJECT_BINARY_DIR}/completions/${file}" DESTINATION "${CMAKE_INSTALL_DATADIR}/${folder}"
            COMPONENT package)
  endforeach()
endif()

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/graft" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT package
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.inc" PATTERN "*.cuh" PATTERN "*.h")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/graft" DESTINATION "${CMAKE_INSTALL_DATADIR}/graft/python"
        FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
# Extensions and their stubs are next to the Python sources, in an installation and in a wheel.
set(package "${CMAKE_INSTALL_DATADIR}/graft/python/graft")
file(RELATIVE_PATH up "/${package}" "/${CMAKE_INSTALL_LIBDIR}")
get_property(extensions GLOBAL PROPERTY GRAFT_EXTENSIONS)
foreach(extension IN LISTS extensions)
  get_target_property(type ${extension} TYPE)
  if(type STREQUAL "MODULE_LIBRARY")
    get_target_property(module ${extension} OUTPUT_NAME)
    set(stub "${GRAFT_OUTPUT_DIR}/python/graft/${module}.pyi")
    set_property(TARGET ${extension} APPEND PROPERTY INSTALL_RPATH "$ORIGIN/${up}")
    install(TARGETS ${extension} LIBRARY DESTINATION "${package}")
    install(FILES "${stub}" DESTINATION "${package}")
    install(TARGETS ${extension} LIBRARY DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL)
    install(FILES "${stub}" DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL)
  endif()
endforeach()
# The files of graft.examples.
foreach(file IN ITEMS digits.onnx digits.pb digits_test.npz)
  install(FILES "${PROJECT_SOURCE_DIR}/examples/digits/${file}" DESTINATION "${package}/data")
  install(FILES "${PROJECT_SOURCE_DIR}/examples/digits/${file}" DESTINATION data COMPONENT wheel EXCLUDE_FROM_ALL)
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
# Messages refer to pages of docs, so the pages and their examples are installed. Links to files that exist only in the
# checkout are removed.
install(FILES "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT package)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT package
        FILES_MATCHING PATTERN "*.md" PATTERN "*.png" PATTERN "*.svg" PATTERN "*.schema.json" PATTERN "messages.toml" PATTERN "decisions" EXCLUDE)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT package PATTERN "__pycache__" EXCLUDE)
install(CODE "set(docs \"${CMAKE_INSTALL_DOCDIR}\")" COMPONENT package)
install(SCRIPT "${PROJECT_SOURCE_DIR}/cmake/InstalledLinks.cmake" COMPONENT package)

# An operator outside this repository uses the same building blocks, and its library is compiled from the same adapter. The
# peers that `graft bench` times are in the operators' folders too, and are found through the list.
foreach(folder ops kernels operator_library adapters/tensorrt)
  if(EXISTS "${PROJECT_SOURCE_DIR}/src/${folder}")
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/src/${folder}/" DESTINATION "${GRAFT_INSTALL_SOURCE_DIR}/${folder}" COMPONENT package
            FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh" PATTERN "exports.*" PATTERN "stand_ins.*"
                           PATTERN "operator_case.cpp" PATTERN "random_cases.cpp" PATTERN "timings_exports.cpp" PATTERN "case_tests*" PATTERN "written_cases.cpp" PATTERN "ops.inc" PATTERN "*_peer.py" PATTERN "fusion" EXCLUDE)
  endif()
endforeach()

# The headers of core that operators and kernels include.
foreach(header hash inverse_norm reduction scatter workspace_parts)
  install(FILES "${PROJECT_SOURCE_DIR}/src/core/${header}.hpp" DESTINATION "${GRAFT_INSTALL_SOURCE_DIR}/core" COMPONENT package)
endforeach()

get_property(libraries GLOBAL PROPERTY GRAFT_INSTALLED_LIBRARIES)
if(libraries)
  install(TARGETS ${libraries} EXPORT graftTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT package)
  install(EXPORT graftTargets NAMESPACE graft:: DESTINATION "${package_dir}" COMPONENT package)
endif()

# TensorRT's headers from the wheel are under the Apache License and are installed. The headers of an SDK may not be copied;
# they are searched for in the folder of the SDK.
set(GRAFT_INSTALL_TENSORRT_DIR "${CMAKE_INSTALL_DATADIR}/graft/tensorrt")
set(GRAFT_BUILT_AGAINST_TENSORRT "")
if(GRAFT_WITH_CUDA AND GRAFT_TENSORRT_INCLUDE_DIR STREQUAL GRAFT_TENSORRT_WHEEL_DIR)
  install(DIRECTORY "${GRAFT_TENSORRT_WHEEL_DIR}/" DESTINATION "${GRAFT_INSTALL_TENSORRT_DIR}" COMPONENT package FILES_MATCHING PATTERN "Nv*.h")
elseif(GRAFT_WITH_CUDA)
  set(GRAFT_BUILT_AGAINST_TENSORRT "${GRAFT_TENSORRT_INCLUDE_DIR}")
endif()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/graftConfig.cmake.in" "${PROJECT_BINARY_DIR}/graftConfig.cmake"
  INSTALL_DESTINATION "${package_dir}" PATH_VARS GRAFT_INSTALL_SOURCE_DIR GRAFT_INSTALL_TENSORRT_DIR CMAKE_INSTALL_BINDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/graftConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/graftConfig.cmake" "${PROJECT_BINARY_DIR}/graftConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/GraftOperators.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/FindCudaCompiler.cmake" "${PROJECT_SOURCE_DIR}/cmake/FindTensorRTHeaders.cmake"
        DESTINATION "${package_dir}" COMPONENT package)

# The files that a wheel has in addition to the Python sources (cmake/wheel packs it), relative to the package. A wheel
# cannot contain links, so
# libgraft.so has the name under which the extension loads it.
if(TARGET graft_python_toolkit)
  set(in_wheel COMPONENT wheel EXCLUDE_FROM_ALL)
  install(TARGETS graft RUNTIME DESTINATION bin ${in_wheel})
  if(GRAFT_WITH_OPENVINO)
    install(TARGETS graft_engine_worker RUNTIME DESTINATION libexec ${in_wheel})
  endif()
  install(FILES "$<TARGET_FILE:graft_toolkit>" DESTINATION lib RENAME "$<TARGET_SONAME_FILE_NAME:graft_toolkit>" ${in_wheel})
  foreach(target graft_c graft_plugins graft_stand_ins graft_onnx_names)
    if(TARGET ${target})
      install(TARGETS ${target} LIBRARY DESTINATION lib ${in_wheel})
    endif()
  endforeach()
endif()
