# bash completion for latchkey
#
# The program names what can follow. The words in front of the cursor are handed to it as they stand: nothing in
# them, and nothing in its answer, is expanded or run.
_latchkey() {
  local words current='' name IFS=$' \t\n' line=${COMP_LINE:0:COMP_POINT}
  read -ra words <<<"$line"
  if [[ $line != *[[:space:]] ]]; then
    current=${words[${#words[@]} - 1]}
    unset "words[${#words[@]}-1]"
  fi
  [[ $current != -* ]] || words+=("$current")
  words[0]=${words[0]/#\~/$HOME}
  local head=${current%"${current##*[:@]}"} # readline completes what follows it
  COMPREPLY=()
  while IFS= read -r name; do
    [[ $name != "$current"* ]] || COMPREPLY+=("${name#"$head"}")
  done < <(LATCHKEY_COMPLETE=names "${words[@]}" --generate-shell-completion 2>/dev/null </dev/null |
    sed -e 's/\([^\\]\):.*/\1/' -e 's/\\:/:/g')
}
complete -o bashdefault -o default -F _latchkey latchkey
