%include "@ROOT@/@FILE@"
