#compdef latchkey
# zsh completion for latchkey. The program names what can follow.
_latchkey() {
  local -a answers
  local current=${words[CURRENT]}
  [[ $current == -* ]] || current=
  answers=("${(@f)$(LATCHKEY_COMPLETE=names ${words[1,CURRENT-1]} $current --generate-shell-completion 2>/dev/null)}")
  if [[ -n ${answers[1]} ]]; then
    _describe value answers
  else
    _files
  fi
}
compdef _latchkey latchkey
