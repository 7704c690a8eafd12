# Compiler flags of everything built here; none of them reaches those who link the library.
function(halosvm_compile_options target)
  if(MSVC)
    target_compile_options(${target} PRIVATE /W4 $<$<BOOL:${HALOSVM_WERROR}>:/WX>)
    return()
  endif()
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic
    $<$<BOOL:${HALOSVM_WERROR}>:-Werror>
    # Let loops over sqrt and comparisons become vector code; results do not change.
    -fno-math-errno -fno-trapping-math)
endfunction()
