# Installs the build into an empty folder and builds and runs the consumer against it:
#   cmake -DBUILD=<build> -DSOURCE=<tests/install> -DWORK=<scratch> -DCXX=<compiler> [-DLAUNCHER=<ccache>] -P this
file(REMOVE_RECURSE "${WORK}")
foreach(step IN ITEMS
    "${CMAKE_COMMAND};--install;${BUILD};--prefix;${WORK}/prefix"
    "${CMAKE_COMMAND};-S;${SOURCE};-B;${WORK}/build;-GNinja;-DCMAKE_BUILD_TYPE=Release;-DCMAKE_PREFIX_PATH=${WORK}/prefix;-DCMAKE_CXX_COMPILER=${CXX};-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}"
    "${CMAKE_COMMAND};--build;${WORK}/build"
    "${CMAKE_CTEST_COMMAND};--test-dir;${WORK}/build;--output-on-failure;--no-tests=error")
  execute_process(COMMAND ${step} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
