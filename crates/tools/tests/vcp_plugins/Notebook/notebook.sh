# Reads one JSON object of texts, as a plugin in any language would.
input=$(cat)
case $input in
*'"command":"AddNote"'*)
    printf '%s\n' "$input" | sed -n 's/.*"text":"\([^"]*\)".*/\1/p' >> notes.txt
    echo '{"status":"success","result":"noted"}'
    ;;
*'"command":"ListNotes"'*)
    printf '{"status":"success","result":"%s"}\n' "$(tr '\n' '|' < notes.txt)"
    ;;
*'"command":"Elsewhere"'*)
    echo elsewhere > ../../diary/note.txt && echo '{"status":"success","result":"noted"}'
    ;;
*'"command":"Hang"'*)
    trap '' TERM
    seconds=$(cat seconds.txt)
    sleep "$seconds" &
    while :; do sleep "$seconds"; done
    ;;
*)
    echo "no such command" >&2
    exit 4
    ;;
esac
