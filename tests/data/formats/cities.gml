Creator "Topology Zoo Toolset"
graph [
  directed 0
  label "Three cities"
  node [ id 0 label "Paris" Longitude 2.35 Latitude 48.85 ]
  node [ id 1 label "Lyon" Longitude 4.83 Latitude 45.76 ]
  node [ id 2 label "Nice" Longitude 7.27 Latitude 43.7 ]
  edge [ source 0 target 1 LinkSpeed "10" LinkSpeedUnits "G" LinkSpeedRaw 10000000000.0 LinkLabel "10 Gbps" ]
  edge [ source 0 target 1 LinkSpeed "2.5" LinkSpeedUnits "G" ]
  edge [ source 1 target 2 LinkLabel "?" ]
]
