echo listed > list.txt
