// Run while the build is configured: its exit status is the level of x86-64 of the processor that builds.
#include "processor_level.hpp"

int main() { return halosvm::processor_level(); }
