#include "@ROOT@/@FILE@"
