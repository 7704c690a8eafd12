"""What the compiled core needs around it: the build that suits the processor, signals, warnings.

isa             which build of the core is imported
config          `show_config`: what this installation consists of
embedding       `cmake_dir`, `include_dir`: the core for C++ programs
abandonable     long calculations that Ctrl-C must end
user_warning    warnings that point at the user's line
"""
