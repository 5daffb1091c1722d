# fish completion for latchkey. The program names what can follow.
function __latchkey_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    string match -q -- '-*' $current; and set -a words $current
    env LATCHKEY_COMPLETE=names $words --generate-shell-completion 2>/dev/null |
        string replace -r '(?<!\\\\):' \t | string replace -a '\\:' ':'
end
complete -c latchkey -e
complete -c latchkey -f -a '(__latchkey_complete)'
