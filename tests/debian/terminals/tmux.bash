# tmux: a server with panes; clients reach it by a socket, and hand it their terminal.
export TERM=screen TMUX_TMPDIR=$PWD
tmux -f /dev/null new-session -d -s one -x 80 -y 24 'bash --norc'
tmux send-keys -t one 'PS1="> "' Enter 'clear; echo $((6 * 7)); tty | tr -d 0-9; stty size' Enter
sleep 1
tmux capture-pane -p -t one | sed '/^$/d'
tmux split-window -t one 'bash --norc'
tmux send-keys -t one.1 'PS1="] "' Enter 'clear; stty size; seq 100 | tail -2' Enter
sleep 1
tmux capture-pane -p -t one.1 | sed '/^$/d'
tmux list-panes -t one -F '#{pane_index} #{pane_width}x#{pane_height} #{pane_current_command}'
tmux new-window -t one -n other 'sleep 100'
tmux list-windows -t one -F '#{window_index} #{window_name} #{window_panes}'
tmux set-buffer 'a buffer'; tmux show-buffer; echo
timeout 20 script -qec 'stty rows 24 columns 80; tmux attach -t one \; detach-client' /dev/null </dev/null | grep -c detached
tmux send-keys -t one:0.0 'exit' Enter
sleep 1
tmux list-panes -t one:0 | wc -l
tmux kill-server
sleep 0.5
tmux ls 2>&1 | sed 's/ on .*//;s/ to .*//'
ls tmux-*/
