# bash completion for latchkey
#
# The program names what can follow. The words in front of the cursor are handed to it as they stand: nothing in
# them is expanded or run.
_latchkey() {
  local words current='' IFS=$' \t\n' line=${COMP_LINE:0:COMP_POINT}
  read -ra words <<<"$line"
  if [[ $line != *[[:space:]] ]]; then
    current=${words[${#words[@]} - 1]}
    unset "words[${#words[@]}-1]"
  fi
  [[ $current != -* ]] || words+=("$current")
  words[0]=${words[0]/#\~/$HOME}
  IFS=$'\n'
  COMPREPLY=($(compgen -W "$("${words[@]}" --generate-shell-completion 2>/dev/null </dev/null | cut -d : -f 1)" -- "$current"))
}
complete -o bashdefault -o default -F _latchkey latchkey
