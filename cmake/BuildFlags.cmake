# Flags for this project's own code. Nothing here reaches a project that embeds or installs the library.

set(CMAKE_CXX_EXTENSIONS OFF)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# ccache needs leave to trust a precompiled header by its content; both compilers need a flag to make that content stable.
find_program(ZLINK_CCACHE ccache)
if(PROJECT_IS_TOP_LEVEL AND ZLINK_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
    "${ZLINK_CCACHE}")
  if(ZLINK_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  elseif(ZLINK_PCH AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
  endif()
endif()

# Everything in the build gets the sanitizer, so that one precompiled header fits all.
if(ZLINK_SANITIZE)
  add_compile_options(-fsanitize=${ZLINK_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ZLINK_SANITIZE})
  if(ZLINK_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      # clang 14 fails to compile some of our coroutine templates with this one check on.
      add_compile_options(-fno-sanitize=function)
      add_compile_options("-fsanitize-ignorelist=${CMAKE_CURRENT_LIST_DIR}/ubsan_ignore.txt")
    endif()
  endif()
endif()

function(zlink_own_code target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Once optimised, std's own code sets these two off in g++ 12 (its bug 105651; the inside of an empty std::optional).
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-maybe-uninitialized)
    if(ZLINK_SANITIZE) # and these two, where a sanitizer's checks stand between its lines
      target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
      if(ZLINK_SANITIZE MATCHES "thread") # fences of Asio, beside locks that the sanitizer does see
        target_compile_options(${target} PRIVATE -Wno-tsan)
      endif()
    endif()
  endif()
  if(ZLINK_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# Under clang's sanitizers tests are not optimised: that takes half the time to compile, and what they test stays quick.
function(zlink_test_code target)
  if(ZLINK_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE -O0)
    if(ZLINK_PCH)
      target_precompile_headers(${target} PRIVATE "${PROJECT_SOURCE_DIR}/zlink/caf/precompiled.hpp")
    endif()
  else()
    zlink_reuse_precompiled_header(${target})
  endif()
endfunction()

# For targets that are compiled with exactly the flags of the library; anything else would need a header of its own.
function(zlink_reuse_precompiled_header target)
  if(ZLINK_PCH)
    target_precompile_headers(${target} REUSE_FROM zlink)
  endif()
endfunction()
