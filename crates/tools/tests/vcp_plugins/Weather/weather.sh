# Each run is one line of a file of its own, so that a test sees how often it ran.
[ -e broken ] && { echo "the sensor is broken" >&2; exit 3; }
echo run >> runs.txt
echo "It snows in $City, seen $(grep -c run runs.txt) times"
