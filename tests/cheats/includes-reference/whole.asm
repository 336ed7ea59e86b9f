; Nothing but the reference's file.
%include "@ROOT@/@FILE@"
